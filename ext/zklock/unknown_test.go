package zklock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestAnswerToCreateIsLost loses the answer to the making of a node, and with it
// the connection. The claim is asked for again over another: there is one node, and
// it is the claim's.
func TestAnswerToCreateIsLost(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, Options{Servers: []string{proxy.Addr()}})
	if _, err := s.session(bounded(t), patience); err != nil {
		t.Fatal(err)
	}
	observer := newStore(t, Options{Servers: []string{server.Addr()}})
	claim := beside(t, observer, "answer/create")

	proxy.Replies.Drop(true)
	ctx, cancel := context.WithTimeout(bounded(t), 300*time.Millisecond)
	defer cancel()
	if g, err := s.Acquire(ctx, claim); err == nil {
		t.Fatalf("got %+v without an answer", g)
	}
	holders := func() (all []driver.Holder) {
		all, err := observer.Holders(bounded(t), claim.Key)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	eventually(t, "the node that nobody knows of", func() bool { return len(holders()) == 2 })
	proxy.Replies.Drop(false)

	var g driver.Grant
	if err := patiently(t, func(ctx context.Context) (err error) { g, err = s.Acquire(ctx, claim); return err }); err != nil || !g.OK {
		t.Fatalf("asked again: %+v, %v", g, err)
	}
	if all := holders(); len(all) != 2 || all[1].Fence != g.Fence {
		t.Errorf("%+v stand in line, want as the second the one with token %d", all, g.Fence)
	}
}

// TestNobodyAsksAgain is the same for a claim that its owner gives up: its node is
// found and removed.
func TestNobodyAsksAgain(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, Options{Servers: []string{proxy.Addr()}})
	if _, err := s.session(bounded(t), patience); err != nil {
		t.Fatal(err)
	}
	observer := newStore(t, Options{Servers: []string{server.Addr()}})
	claim := beside(t, observer, "answer/given-up")

	proxy.Replies.Drop(true)
	ctx, cancel := context.WithTimeout(bounded(t), 300*time.Millisecond)
	defer cancel()
	if g, err := s.Acquire(ctx, claim); err == nil {
		t.Fatalf("got %+v without an answer", g)
	}
	claim.Late = true
	if errs := s.Release(ctx, []driver.Claim{claim}); errs == nil || errors.Is(errs[0], driver.ErrLost) {
		t.Fatalf("released without an answer: %v", errs)
	}
	proxy.Replies.Drop(false)
	if err := patiently(t, func(ctx context.Context) error { return only(s.Release(ctx, []driver.Claim{claim})) }); err != nil {
		t.Errorf("released: %v", err)
	}
	if all, err := observer.Holders(bounded(t), claim.Key); err != nil || len(all) != 1 {
		t.Errorf("%+v stand in line, %v; want only the other", all, err)
	}
}

// beside is a claim of a slot beside another that is held, so that the node of the
// key is there, and stays.
func beside(t *testing.T, other *Store, key string) driver.Claim {
	t.Helper()
	claim := exclusive(key, "other")
	claim.Weight, claim.Limit = 1, 2
	if g, err := other.Acquire(bounded(t), claim); err != nil || !g.OK {
		t.Fatalf("got %+v, %v", g, err)
	}
	claim.ID, claim.Wait = "one", true
	return claim
}

// TestAnswerToDeleteIsLost loses the answer to a release. Asked again, it was this
// release that ended the claim.
func TestAnswerToDeleteIsLost(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, Options{Servers: []string{proxy.Addr()}})
	observer := newStore(t, Options{Servers: []string{server.Addr()}})
	claim := exclusive("answer/delete", "one")
	if g, err := s.Acquire(bounded(t), claim); err != nil || !g.OK {
		t.Fatalf("got %+v, %v", g, err)
	}
	proxy.Replies.Drop(true)
	ctx, cancel := context.WithTimeout(bounded(t), 300*time.Millisecond)
	defer cancel()
	if errs := s.Release(ctx, []driver.Claim{claim}); errs == nil || errors.Is(errs[0], driver.ErrLost) {
		t.Fatalf("released without an answer: %v", errs)
	}
	next := exclusive(claim.Key, "next")
	eventually(t, "the next claim", func() bool {
		g, err := observer.Acquire(bounded(t), next)
		return err == nil && g.OK
	})
	proxy.Replies.Drop(false)
	if err := patiently(t, func(ctx context.Context) error { return only(s.Release(ctx, []driver.Claim{claim})) }); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if errs := observer.Renew(bounded(t), []driver.Claim{next}); errs != nil {
		t.Errorf("the next one is gone: %v", errs)
	}
}

// TestSecondSession ends a session, and asks again with the id of a claim that was
// never answered: what the old session has left is not taken for the claim's.
func TestSecondSession(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, Options{Servers: []string{proxy.Addr()}})
	claim := exclusive("second/session", "one")
	claim.Wait, claim.TTL = true, 2*time.Second
	before, err := s.session(bounded(t), claim.TTL)
	if err != nil {
		t.Fatal(err)
	}
	id := before.zoo.ID()
	proxy.Replies.Drop(true)
	ctx, cancel := context.WithTimeout(bounded(t), 300*time.Millisecond)
	defer cancel()
	if g, err := s.Acquire(ctx, claim); err == nil {
		t.Fatalf("got %+v without an answer", g)
	}
	<-before.zoo.Ended()
	proxy.Replies.Drop(false)
	var g driver.Grant
	eventually(t, "a grant once the old session is over", func() bool {
		g, err = s.Acquire(bounded(t), claim)
		return err == nil && g.OK
	})
	s.mu.Lock()
	cl := s.claims[nameOf(claim)]
	s.mu.Unlock()
	if now := cl.session.zoo.ID(); now == id {
		t.Errorf("the claim hangs on the session %d that has ended", id)
	}
	if errs := s.Renew(bounded(t), []driver.Claim{claim}); errs != nil {
		t.Errorf("renewed: %v", errs)
	}
}
