package zklock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// TestAnswerToCreateIsLost loses the answer to the making of a node, and with it
// the connection. The claim is asked for again over another: there is one node, and
// it is the claim's.
func TestAnswerToCreateIsLost(t *testing.T) {
	t.Parallel()
	u := leaveUnanswered(t, "answer/create", (*servers.Direction).Drop)
	u.proxy.Replies.Drop(false)
	var g driver.Grant
	if err := patiently(t, func(ctx context.Context) (err error) { g, err = u.store.Acquire(ctx, u.ask); return err }); err != nil || !g.OK {
		t.Fatalf("asked again: %+v, %v", g, err)
	}
	if all := u.holders(); len(all) != 2 || all[1].Fence != g.Fence {
		t.Errorf("%+v are in the queue, want as the second the one with token %d", all, g.Fence)
	}
}

// TestGivenUpUnanswered gives up a claim whose node is made, with the answer still on
// its way. The release waits for that, and removes the node.
func TestGivenUpUnanswered(t *testing.T) {
	t.Parallel()
	u := leaveUnanswered(t, "answer/given-up", (*servers.Direction).Hold)
	release := func(ctx context.Context) error {
		return errors.Join(u.store.Release(ctx, []driver.Release{{Claim: u.ask.Claim, Late: true}})...)
	}
	if err := u.briefly(release); err == nil || errors.Is(err, driver.ErrLost) {
		t.Fatalf("released without an answer: %v", err)
	}
	u.proxy.Replies.Hold(false)
	if err := patiently(t, release); err != nil {
		t.Errorf("released: %v", err)
	}
	if all := u.holders(); len(all) != 1 {
		t.Errorf("%+v are in the queue, want only the other", all)
	}
}

// TestAskedAgainUnanswered asks again for a claim whose node is made, with the answer
// still on its way: no second node is made.
func TestAskedAgainUnanswered(t *testing.T) {
	t.Parallel()
	u := leaveUnanswered(t, "answer/asked-again", (*servers.Direction).Hold)
	acquire := func(ctx context.Context) (err error) {
		_, err = u.store.Acquire(ctx, u.ask)
		return err
	}
	if err := u.briefly(acquire); err == nil {
		t.Fatal("got an answer that was held back")
	}
	u.proxy.Replies.Hold(false)
	if err := patiently(t, acquire); err != nil {
		t.Fatal(err)
	}
	if all := u.holders(); len(all) != 2 {
		t.Errorf("%+v are in the queue, want the other and the claim", all)
	}
}

// TestImpatient asks again and again for a claim with the answers still on their way,
// each time for less long than they take. Nothing is sent anew, and the first answers do.
func TestImpatient(t *testing.T) {
	t.Parallel()
	u := leaveUnanswered(t, "answer/impatient", (*servers.Direction).Hold)
	acquire := func(ctx context.Context) (err error) {
		_, err = u.store.Acquire(ctx, u.ask)
		return err
	}
	u.store.mu.Lock()
	cl := u.store.claims[nameOf(u.ask.Claim)]
	u.store.mu.Unlock()
	asked := []*zoo.Call{cl.creating, cl.listing}
	for range 3 {
		if err := u.briefly(acquire); err == nil {
			t.Fatal("got an answer that was held back")
		}
		if now := []*zoo.Call{cl.creating, cl.listing}; !slices.Equal(now, asked) {
			if asked[0].Answered() { // by the end of the connection
				unproved.Skipf(t, "the server was silent for too long")
			}
			t.Error("asked anew, with the answers on their way")
		}
	}
	u.proxy.Replies.Hold(false)
	if err := patiently(t, acquire); err != nil {
		t.Fatal(err)
	}
	if all := u.holders(); len(all) != 2 {
		t.Errorf("%+v are in the queue, want the other and the claim", all)
	}
}

// TestImpatientForNewKey asks for a key that is not there, each time for less long than an
// answer takes. The first answer says that there is no such node, so the next ask need not
// find out again.
func TestImpatientForNewKey(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	u := &unanswered{t: t, proxy: proxy, ask: exclusive("answer/new", "one")}
	u.ask.Wait = true
	u.store = newStore(t, []string{proxy.Addr()}, nil)
	u.observer = newStore(t, []string{server.Addr()}, nil)
	granted(t, u.observer, exclusive("answer/prefix", "one"))
	sessionOf(t, u.store, u.ask.TTL)
	var cl *claim
	ask := func() {
		err := u.briefly(func(ctx context.Context) (err error) {
			_, err = u.store.Acquire(ctx, u.ask)
			return err
		})
		if err == nil {
			t.Fatal("got an answer that was held back")
		}
		u.store.mu.Lock()
		defer u.store.mu.Unlock()
		cl = u.store.claims[nameOf(u.ask.Claim)]
	}
	proxy.Replies.Hold(true)
	servers.Until(t, "it is asked for", func() bool {
		ask()
		return cl != nil && cl.creating != nil
	})
	proxy.Replies.Hold(false)
	servers.Until(t, "the first answer", cl.creating.Answered)
	proxy.Replies.Hold(true)
	servers.Until(t, "the claim's node", func() bool {
		ask()
		return len(u.holders()) == 1
	})
	proxy.Replies.Hold(false)
}

// TestFindsOne loses the answer for a claim that has two nodes: one of them stays.
func TestFindsOne(t *testing.T) {
	t.Parallel()
	u := leaveUnanswered(t, "answer/twice", (*servers.Direction).Hold)
	k := sessionOf(t, u.store, u.ask.TTL)
	again := zoo.Create(u.store.dir(u.ask.Key)+"/"+placeName(u.ask.Claim), "", u.store.acl, zoo.Ephemeral)
	if _, err := k.zoo.Send(bounded(t), again); err != nil {
		t.Fatal(err)
	}
	servers.Until(t, "the second node", func() bool { return len(u.holders()) == 3 })
	u.proxy.Reset()
	u.proxy.Replies.Hold(false)
	var g driver.Grant
	if err := patiently(t, func(ctx context.Context) (err error) { g, err = u.store.Acquire(ctx, u.ask); return err }); err != nil || !g.OK {
		t.Fatalf("asked again: %+v, %v", g, err)
	}
	if all := u.holders(); len(all) != 2 || all[1].Fence != g.Fence {
		t.Errorf("%+v are in the queue, want as the second the one with token %d", all, g.Fence)
	}
}

// An unanswered is a claim beside another whose node is made, while the store has not
// heard of that: its server's answers are held back, or dropped.
type unanswered struct {
	t        *testing.T
	proxy    *servers.Proxy
	store    *Store
	observer *Store
	ask      driver.Ask
}

func leaveUnanswered(t *testing.T, key string, silence func(replies *servers.Direction, on bool)) *unanswered {
	t.Helper()
	u := &unanswered{t: t, proxy: servers.StartProxy(t, server.Addr())}
	u.store = newStore(t, []string{u.proxy.Addr()}, nil)
	sessionOf(t, u.store, patience)
	u.observer = newStore(t, []string{server.Addr()}, nil)
	u.ask = beside(t, u.observer, key)
	silence(u.proxy.Replies, true)
	ctx, cancel := context.WithCancel(bounded(t))
	acquired := make(chan error, 1)
	go func() {
		_, err := u.store.Acquire(ctx, u.ask)
		acquired <- err
	}()
	servers.Until(t, "the node that nobody knows of", func() bool { return len(u.holders()) == 2 })
	cancel()
	if err := <-acquired; err == nil {
		t.Fatal("got an answer that was held back")
	}
	return u
}

// briefly makes a call that is given up before there is an answer.
func (u *unanswered) briefly(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(bounded(u.t), 300*time.Millisecond)
	defer cancel()
	return call(ctx)
}

func (u *unanswered) holders() []driver.Holder {
	u.t.Helper()
	all, err := u.observer.Holders(bounded(u.t), u.ask.Key)
	if err != nil {
		u.t.Fatal(err)
	}
	return all
}

// beside is a claim of a slot beside another that is held, so that the node of the
// key is there, and stays.
func beside(t *testing.T, other *Store, key string) driver.Ask {
	t.Helper()
	claim := exclusive(key, "other")
	claim.Weight, claim.Limit = 1, 2
	granted(t, other, claim)
	claim.ID, claim.Wait = "one", true
	return claim
}

// TestAnswerToDeleteIsLost loses the answer to a release. Asked again, it was this
// release that ended the claim.
func TestAnswerToDeleteIsLost(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, []string{proxy.Addr()}, nil)
	observer := newStore(t, []string{server.Addr()}, nil)
	claim := exclusive("answer/delete", "one")
	granted(t, s, claim)
	proxy.Replies.Drop(true)
	ctx, cancel := context.WithCancel(bounded(t))
	released := make(chan error, 1)
	go func() { released <- release(ctx, s, claim) }()
	next := exclusive(claim.Key, "next")
	servers.Until(t, "the next claim", func() bool {
		g, err := observer.Acquire(bounded(t), next)
		return err == nil && g.OK
	})
	cancel()
	if err := <-released; err == nil || errors.Is(err, driver.ErrLost) {
		t.Fatalf("released without an answer: %v", err)
	}
	proxy.Replies.Drop(false)
	if err := patiently(t, func(ctx context.Context) error { return release(ctx, s, claim) }); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if err := renew(bounded(t), observer, next); err != nil {
		t.Errorf("the next one is gone: %v", err)
	}
}

// TestAnswerToBreakIsLost loses the answer to an operator's break: it was this one
// that ended the claim.
func TestAnswerToBreakIsLost(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, []string{proxy.Addr()}, nil)
	sessionOf(t, s, usual)
	owner := newStore(t, []string{server.Addr()}, nil)
	claim := exclusive("answer/break", "one")
	granted(t, owner, claim)
	proxy.Replies.Delay(time.Second)
	broken := make(chan error, 1)
	go func() { broken <- s.Break(bounded(t), claim.Key, driver.PublicID(claim.ID)) }()
	servers.Until(t, "the claim is gone", func() bool {
		all, err := owner.Holders(bounded(t), claim.Key)
		return err == nil && len(all) == 0
	})
	proxy.Reset()
	proxy.Replies.Delay(0)
	if err := <-broken; err != nil {
		t.Errorf("broken: %v", err)
	}
	if err := s.Break(bounded(t), claim.Key, driver.PublicID(claim.ID)); !errors.Is(err, driver.ErrLost) {
		t.Errorf("broken again: %v", err)
	}
}

// TestSecondSession ends a session, and asks again with the id of a claim that was
// never answered: what the old session has left is not taken for the claim's.
func TestSecondSession(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, []string{proxy.Addr()}, nil)
	claim := exclusive("second/session", "one")
	claim.Wait, claim.TTL = true, 2*time.Second
	before := sessionOf(t, s, claim.TTL)
	id := before.zoo.ID()
	proxy.Replies.Drop(true)
	ctx, cancel := context.WithTimeout(bounded(t), 300*time.Millisecond)
	defer cancel()
	if g, err := s.Acquire(ctx, claim); err == nil {
		t.Fatalf("got %+v without an answer", g)
	}
	<-before.zoo.Ended()
	proxy.Replies.Drop(false)
	claim.TTL = patience // It has to last until it is renewed.
	servers.Until(t, "a grant once the old session is over", func() bool {
		g, err := s.Acquire(bounded(t), claim)
		return err == nil && g.OK
	})
	s.mu.Lock()
	cl := s.claims[nameOf(claim.Claim)]
	s.mu.Unlock()
	if now := cl.session.zoo.ID(); now == id {
		t.Errorf("the claim hangs on the session %d that has ended", id)
	}
	if err := renew(bounded(t), s, claim); err != nil {
		t.Errorf("renewed: %v", err)
	}
}
