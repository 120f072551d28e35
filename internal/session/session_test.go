package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// The limit is raised before a claim is requested that needs a longer limit, and lowered
// when the claim has ended.
func TestLimitFollowsLongestTTL(t *testing.T) {
	run(t, func(b *fixture) {
		short, long := claim("a", "short", 10*time.Second), claim("b", "long", 30*time.Second)
		b.take(short)
		c := b.server.last()
		if got := c.lastLimit(); got != 11*time.Second {
			b.Errorf("the first session begins with a limit of %v", got)
		}
		c.requests()
		b.take(long)
		b.expect(c.requests("ping", "try"), "ping 31s", "try name of b")

		for range 10 { // twice that of the longer one
			time.Sleep(6 * time.Second)
			if err := errors.Join(b.Renew(b.Context(), []driver.Renewal{{Claim: short}, {Claim: long}})...); err != nil {
				b.Fatal(err)
			}
		}
		if got := c.lastLimit(); got != 31*time.Second {
			b.Errorf("while both are held the limit is %v", got)
		}
		if err := b.release(long); err != nil {
			b.Fatal(err)
		}
		for range 5 {
			time.Sleep(6 * time.Second)
			if err := b.renew(short); err != nil {
				b.Fatal(err)
			}
		}
		if got := c.lastLimit(); got != 11*time.Second {
			b.Errorf("when the longer one is gone the limit is %v", got)
		}
		short.TTL = time.Minute
		if err := b.renew(short); err != nil {
			b.Fatal(err)
		}
		if got := c.lastLimit(); got != 61*time.Second {
			b.Errorf("renewed for a minute, under a limit of %v", got)
		}
	})
}

// A lower limit may be in force though its ping was never answered.
func TestUnansweredPingCounts(t *testing.T) {
	run(t, func(b *fixture) {
		short, long := claim("a", "short", 20*time.Second), claim("b", "long", 30*time.Second)
		b.take(short)
		b.take(long)
		if err := b.release(long); err != nil {
			b.Fatal(err)
		}
		c := b.server.last()
		release := c.hold()
		c.requests()
		time.Sleep(pause(31 * time.Second))
		synctest.Wait()
		b.expect(c.requests("ping"), "ping 21s")
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if err := errors.Join(b.Renew(ctx, []driver.Renewal{{Claim: short}})...); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("renewed for 20 s from now, when the server may end the session 11 s from now: %v", err)
		}
		release()
		if err := b.renew(short); err != nil {
			b.Error(err)
		}
	})
}

// A higher limit may not be in force before its ping was answered.
func TestUnansweredPingDoesNotCount(t *testing.T) {
	run(t, func(b *fixture) {
		short := claim("a", "short", 10*time.Second)
		b.take(short)
		b.server.last().hold()
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if _, err := b.acquire(ctx, claim("b", "long", 30*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("the server does not answer: %v", err)
		}
		short.TTL = 20 * time.Second
		if err := errors.Join(b.Renew(ctx, []driver.Renewal{{Claim: short}})...); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("renewed for 20 s, when the server may end the session in 11 s: %v", err)
		}
	})
}

// A thousand locks are renewed a thousand times as often as one lock. The server receives no
// more pings: about one in the margin of the limit.
func TestOnePingForAll(t *testing.T) {
	run(t, func(b *fixture) {
		const locks, ttl, ttls = 1000, 30 * time.Second, 5
		lk := must.Get(holdfast.New(b.Watcher, &holdfast.Options{TTL: ttl}))
		defer lk.Close()
		for i := range locks {
			l, err := lk.Lock(b.Context(), fmt.Sprint(i))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Unlock()
			time.Sleep(ttl / locks) // so that they are not renewed all at once
		}
		c := b.server.last()
		c.requests()
		time.Sleep(ttls * ttl)
		pings := len(c.requests("ping", "try", "free"))
		b.Logf("%d requests for %d locks in %d TTLs", pings, locks, ttls)
		if most := int(ttls*ttl/(silence(ttl)-ttl)) + 1; pings > most || pings < ttls {
			b.Errorf("%d requests, want %d at most, and one in a TTL", pings, most)
		}
	})
}

// Close does not wait for a server that does not answer, and leaves no session
// that opens meanwhile.
func TestCloseWhileOpening(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		run(t, func(b *fixture) {
			b.server.opens, b.server.ignoresCancel = make(chan struct{}), deaf
			asked := make(chan error, 1)
			go func() {
				_, err := b.acquire(b.Context(), claim("a", "1", time.Minute))
				asked <- err
			}()
			synctest.Wait()
			closed := make(chan struct{})
			go func() { b.Close(); close(closed) }()
			synctest.Wait()
			if deaf {
				b.server.opens <- struct{}{}
			}
			<-closed
			if err := <-asked; err == nil {
				b.Error("a claim was granted by a closed store")
			}
			for _, c := range b.server.conns {
				if c.reason() == nil {
					b.Error("a session that was opened during Close goes on")
				}
			}
			if _, err := b.acquire(b.Context(), claim("a", "2", time.Minute)); !errors.Is(err, errClosed) {
				b.Errorf("after Close: %v", err)
			}
		})
	}
}

// If the first caller does not wait for the opening, the opening serves a later caller.
func TestOpeningIsShared(t *testing.T) {
	run(t, func(b *fixture) {
		b.server.opens = make(chan struct{})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if _, err := b.acquire(ctx, claim("a", "1", time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("no session within a second: %v", err)
		}
		granted := make(chan driver.Grant)
		go func() { granted <- b.take(claim("a", "2", time.Minute)) }()
		synctest.Wait()
		b.server.opens <- struct{}{}
		<-granted
		if n := len(b.server.conns); n != 1 {
			b.Errorf("%d sessions", n)
		}
	})
}

// If a caller gives up before the answer, the lock does not stay with the process.
func TestCancelWhileAsking(t *testing.T) {
	run(t, func(b *fixture) {
		b.take(claim("other", "0", time.Minute))
		c := b.server.last()
		release := c.hold()
		gone := claim("a", "gone", time.Minute)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if _, err := b.acquire(ctx, gone); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("the server does not answer: %v", err)
		}
		released := make(chan error, 1)
		go func() { released <- b.release(gone) }()
		synctest.Wait()
		c.requests()
		release()
		if err := <-released; err != nil {
			b.Error(err)
		}
		b.expect(c.requests("free"), "free name of a")
		b.take(claim("a", "next", time.Minute))
	})
}

// A second Acquire with the same id, after a call without an answer, is granted.
func TestAskAgain(t *testing.T) {
	run(t, func(b *fixture) {
		b.take(claim("other", "0", time.Minute))
		c := b.server.last()
		release := c.hold()
		again := claim("a", "again", time.Minute)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, _ = b.acquire(ctx, again)
		release()
		c.requests()
		first := b.take(again)
		if second := b.take(again); second.Fence != first.Fence {
			b.Errorf("asked again, the token is %d after %d", second.Fence, first.Fence)
		}
		b.expect(c.requests("try", "free"))
		b.refused(claim("a", "other", time.Minute))
	})
}

// A claim that its owner does not renew is released, and its waiters are woken.
func TestClaimExpires(t *testing.T) {
	run(t, func(b *fixture) {
		held, kept := claim("a", "1", 10*time.Second), claim("b", "2", time.Minute)
		b.take(held)
		b.take(kept)
		woken := 0
		stop, err := b.Watch(b.Context(), claim("a", "3", time.Minute), func(driver.Grant) { woken++ })
		if err != nil {
			b.Fatal(err)
		}
		defer stop()
		c := b.server.last()
		c.requests()
		time.Sleep(10*time.Second - time.Nanosecond)
		b.expect(c.requests("free"))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.expect(c.requests("free"), "free name of a")
		if woken != 1 {
			b.Errorf("the waiter was woken %d times", woken)
		}
		if err := b.renew(held); !errors.Is(err, driver.ErrLost) {
			b.Errorf("renewed after its TTL: %v", err)
		}
		b.take(claim("a", "3", time.Minute))
		if err := b.renew(kept); err != nil {
			b.Errorf("the other claim: %v", err)
		}
	})
}

// A claim that its owner releases while the store releases the expired claim is lost: another
// process may hold the lock already.
func TestReleaseWhileExpiring(t *testing.T) {
	run(t, func(b *fixture) {
		late := claim("a", "late", 10*time.Second)
		b.take(late)
		b.take(claim("b", "other", time.Minute)) // for which the session lives on
		c := b.server.last()
		c.requests()
		time.Sleep(10*time.Second - time.Nanosecond)
		answer := c.hold()
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.expect(c.requests("free"), "free name of a")
		released := make(chan error, 1)
		go func() { released <- b.release(late) }()
		synctest.Wait()
		answer()
		if err := <-released; !errors.Is(err, driver.ErrLost) {
			b.Errorf("released while it expired: %v", err)
		}
		b.expect(c.requests("free"))
	})
}

// A different session holds the lock, and frees it.
func TestWokenByOthers(t *testing.T) {
	run(t, func(b *fixture) {
		c := claim("a", "1", time.Minute)
		b.server.taken["name of a"] = true
		woken := make(chan struct{}, 10)
		stop, err := b.Watch(b.Context(), c, func(driver.Grant) { woken <- struct{}{} })
		if err != nil {
			b.Fatal(err)
		}
		b.refused(c)
		delete(b.server.taken, "name of a")
		b.server.last().events.Free("name of a")
		<-woken
		b.take(c)
		stop()
		b.server.last().events.Free("name of a")
		if len(woken) > 0 {
			b.Error("woken after it has stopped to watch")
		}
	})
}

// The error of an opening that reaches its limit does not match the error of a context.
func TestOpeningHasItsOwnLimit(t *testing.T) {
	run(t, func(b *fixture) {
		b.server.opens = make(chan struct{})
		_, err := b.acquire(b.Context(), claim("a", "1", time.Minute))
		if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("no session within the limit of an opening: %v", err)
		}
	})
}
