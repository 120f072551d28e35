package zklock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// TestCutOffClient cuts a holder off from the servers without a word. It is told
// before another has the lock, and its token is the smaller one.
func TestCutOffClient(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	proxy := servers.StartProxy(t, server.Addr())
	first := locked(t, locker(t, holdfast.Options{TTL: ttl}, proxy.Addr()), "silence/cut")
	token := first.Fence()
	proxy.Blackhole(true)
	second := locked(t, locker(t, holdfast.Options{TTL: ttl}, server.Addr()), "silence/cut")
	if err := first.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("another has the lock, and the first holder sees %v", err)
	}
	if second.Fence() <= token {
		t.Errorf("the later token is %d, the earlier one %d", second.Fence(), token)
	}
}

// TestSessionEnds tells of a claim whose session ends, with the cause, before the
// servers let another in, though the claim has a longer TTL than these servers keep
// sessions for.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	z := servers.StartZooKeeper(t, "forceSync=no", "maxSessionTimeout=4000")
	proxy := servers.StartProxy(t, z.Addr())
	s := newStore(t, []string{proxy.Addr()}, nil)
	other := newStore(t, []string{z.Addr()}, nil)
	held, next := exclusive("ends", "held"), exclusive("ends", "next")
	losses := make(chan error, 99)
	s.Notify(func(_, _ string, err error) { losses <- err })
	var k *session
	servers.Until(t, "a grant", func() bool { // A pause of this machine may end a session of four seconds.
		g, err := s.Acquire(bounded(t), held)
		if err == nil && g.OK && g.TTL != 2*time.Second {
			t.Errorf("granted for %v, want two seconds", g.TTL)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		cl := s.claims[nameOf(held.Claim)]
		if err != nil || !g.OK || cl == nil {
			return false
		}
		k = cl.session
		return true
	})
	proxy.Refuse(true)
	proxy.Reset()
	servers.Until(t, "the key is free", func() bool {
		g, err := other.Acquire(bounded(t), next)
		return err == nil && g.OK
	})
	if left := k.zoo.Trust() - s.clock.Now(); left > 0 {
		t.Errorf("another was let in %v before the end of the session was certain", left)
	}
	select {
	case <-k.zoo.Ended():
	case <-time.After(patience):
		t.Fatal("the session was over, and did not end")
	}
	select {
	case err := <-losses:
		if !errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrBroken) {
			t.Errorf("the loss was told as %v", err)
		}
	default:
		t.Error("the session has ended, and the loss was not told")
	}
	proxy.Refuse(false)
	if err := renew(bounded(t), s, held); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the claim that was lost: %v", err)
	}
	if warnings, err := other.Check(bounded(t)); err != nil || len(warnings) != 1 {
		t.Errorf("checked the servers: %q, %v", warnings, err)
	}
}

// TestWaiterInOutage cuts a waiter off for longer than it keeps its place without
// asking. It goes on asking, without an answer, and has its place when that comes.
func TestWaiterInOutage(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := newStore(t, []string{proxy.Addr()}, nil)
	other := newStore(t, []string{server.Addr()}, nil)
	holder, waiter := exclusive("outage", "holder"), exclusive("outage", "waiter")
	waiter.Wait = true
	granted(t, other, holder)
	place := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if cl := s.claims[nameOf(waiter.Claim)]; cl != nil && cl.state == waiting {
			return cl.node
		}
		return "none"
	}
	var before string
	var last, silent time.Duration
	servers.Until(t, "a place", func() bool { // A late answer may find the place lost.
		last = s.clock.Now()
		refused(t, s, waiter)
		before = place()
		return before != "none"
	})
	ask := func(ctx context.Context) error {
		now := s.clock.Now()
		silent, last = max(silent, now-last), now
		_, err := s.Acquire(ctx, waiter)
		return err
	}
	proxy.Refuse(true)
	proxy.Reset()
	for began := s.clock.Now(); s.clock.Now() < began+waiter.Alive()+time.Second; {
		ctx, cancel := context.WithTimeout(bounded(t), 200*time.Millisecond)
		_ = ask(ctx) // mostly unanswered
		cancel()
	}
	proxy.Refuse(false)
	if err := patiently(t, ask); err != nil {
		t.Fatal(err)
	}
	switch now := place(); {
	case now == before:
	case silent > waiter.Alive()/2: // and so, for the store, perhaps for all of it
		unproved.Logf(t, "nobody asked for %v", silent)
	default:
		t.Errorf("its place was %q, and is %q", before, now)
	}
}

// TestSilentServer opens a session with a server that does not answer, until the store gives up or is
// closed. The error matches no error of a context, since the context of the caller goes on.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(s *Store){
		"in time":      func(*Store) {},
		"with a Close": func(s *Store) { s.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, []string{serve(t, "")}, nil)
			ctx, acquired := bounded(t), make(chan error, 1)
			go func() {
				_, err := s.Acquire(ctx, exclusive("silent", "id"))
				acquired <- err
			}()
			servers.Until(t, "the session is being opened", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.openings) > 0 || len(acquired) > 0 // the store may have given up
			})
			end(s)
			if err := <-acquired; err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("acquired: %v", err)
			}
		})
	}
}

// TestReconnect breaks the connections of holders and waiters again and again: the
// locks stand, and a release that nobody was connected for wakes the next.
func TestReconnect(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	a := locker(t, holdfast.Options{TTL: patience}, proxy.Addr())
	b := locker(t, holdfast.Options{TTL: patience}, server.Addr())
	for range 5 {
		first := locked(t, b, "reconnect")
		waiter := make(chan *holdfast.Lock)
		go func() {
			l, err := lockedWithin(bounded(t), a, "reconnect")
			if err != nil {
				t.Error(err)
			}
			waiter <- l
		}()
		servers.Until(t, "it waits", func() bool {
			hs, err := b.Holders(bounded(t), "reconnect")
			return err == nil && len(hs) == 2
		})
		proxy.Refuse(true)
		proxy.Reset()
		if err := unlock(first); err != nil {
			t.Error(err)
		}
		proxy.Refuse(false)
		second := <-waiter
		proxy.Reset()
		if second == nil {
			return
		}
		if err := unlock(second); err != nil {
			t.Errorf("unlocked over another connection: %v", err)
		}
	}
}

// TestToldWhileAsked tells of the loss of a claim while its owner asks for it again.
func TestToldWhileAsked(t *testing.T) {
	t.Parallel()
	s := newStore(t, []string{server.Addr()}, nil)
	a := exclusive("told", "id")
	s.Notify(func(key, id string, err error) {
		if key != a.Key || id != a.ID || !errors.Is(err, driver.ErrLost) {
			t.Errorf("the loss of %s on %s was told, with %v", id, key, err)
		}
	})
	granted(t, s, a)
	s.mu.Lock()
	calls := s.loseLocked(s.claims[nameOf(a.Claim)], driver.ErrBroken)
	s.mu.Unlock()
	told := make(chan bool)
	go func() {
		calls.send()
		close(told)
	}()
	if g, err := s.Acquire(bounded(t), a); err != nil || g.OK {
		t.Errorf("got %+v, %v", g, err)
	}
	<-told
}
