package session

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// When a session ends, holders are notified before waiters are woken.
func TestLossIsNotifiedBeforeWakes(t *testing.T) {
	run(t, func(b *fixture) {
		var told []string
		defer b.Notify(func(key, id string, err error) {
			if !errors.Is(err, driver.ErrLost) || !errors.Is(err, errTooSilent) {
				b.Errorf("%s is lost with %v", key, err)
			}
			told = append(told, "lost "+id)
		})()
		held, waiting := claim("a", "holder", time.Minute), claim("a", "waiter", time.Minute)
		b.take(held)
		stop, err := b.Watch(b.Context(), waiting, func(driver.Grant) { told = append(told, "wake") })
		if err != nil {
			b.Fatal(err)
		}
		defer stop()
		b.refused(waiting)
		first := b.server.last()
		first.Close(errTooSilent)
		synctest.Wait()
		if want := []string{"lost holder", "wake"}; !slices.Equal(told, want) {
			b.Errorf("told %q, want %q", told, want)
		}
		if err := b.renew(held); !errors.Is(err, driver.ErrLost) {
			b.Errorf("renewed in another session: %v", err)
		}
		b.take(waiting)
		if b.server.last() == first {
			b.Error("granted in the session that has ended")
		}
		b.expect(b.server.last().requests("watch", "try"), "watch name of a", "try name of a")
	})
}

// A client that ends its session after an error says so before the server frees the locks. A waiter
// is woken after that, when the locks are free.
func TestLossIsNotifiedBeforeTheEnd(t *testing.T) {
	run(t, func(b *fixture) {
		held := claim("a", "holder", time.Minute)
		b.take(held)
		c := b.server.last()
		why := errors.New("an unexpected answer")
		var told []string
		defer b.Notify(func(_, id string, err error) {
			told = append(told, id)
			if !errors.Is(err, driver.ErrLost) || !errors.Is(err, why) || c.reason() != nil {
				b.Errorf("told %v, and the session was closed with %v", err, c.reason())
			}
			if err := b.renew(held); !errors.Is(err, driver.ErrLost) {
				b.Errorf("renewed when the loss was told: %v", err)
			}
		})()
		stop, err := b.Watch(b.Context(), claim("a", "waiter", time.Minute), func(driver.Grant) { told = append(told, "wake") })
		if err != nil {
			b.Fatal(err)
		}
		defer stop()
		c.fail(why)
		synctest.Wait()
		if want := []string{"holder", "wake"}; !slices.Equal(told, want) {
			b.Errorf("told %q, want %q", told, want)
		}
		b.take(claim("a", "waiter", time.Minute)) // in another
	})
}

// If the server does not answer, the session ends when the server has certainly ended it, and
// not before: the server may only be slow.
func TestSilentServer(t *testing.T) {
	run(t, func(b *fixture) {
		const ttl = 10 * time.Second
		b.take(claim("a", "1", ttl))
		c := b.server.last()
		c.hold()
		time.Sleep(silence(ttl) - time.Nanosecond)
		if c.reason() != nil {
			b.Error("the session was closed before the server's limit")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if c.reason() != errSilent {
			b.Errorf("at the server's limit the session was closed with %v", c.reason())
		}
		b.take(claim("a", "2", ttl)) // in another
	})
}

// A claim that was renewed while a longer one stood outlasts the limit that follows from its TTL.
func TestSilentServerKeepsClaims(t *testing.T) {
	run(t, func(b *fixture) {
		long, short := claim("a", "1", 30*time.Second), claim("b", "2", 10*time.Second)
		b.take(long)
		b.take(short)
		c := b.server.last()
		time.Sleep(9 * time.Second)
		if err := errors.Join(b.renew(short), b.release(long)); err != nil {
			b.Fatal(err)
		}
		c.hold()
		time.Sleep(10*time.Second - time.Nanosecond)
		if c.reason() != nil {
			b.Error("the session was closed while it had a claim")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if c.reason() != errSilent {
			b.Errorf("after its last claim the session was closed with %v", c.reason())
		}
	})
}

// The server may answer after the session was closed, and a lock that it grants then is free again
// at once.
func TestClosedSessionGrantsNothing(t *testing.T) {
	run(t, func(b *fixture) {
		const ttl = 10 * time.Second
		b.take(claim("a", "1", ttl))
		c := b.server.last()
		c.late = true
		c.hold()
		time.Sleep(silence(ttl) - time.Nanosecond)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if g, err := b.acquire(b.Context(), claim("b", "2", ttl)); g.OK || !errors.Is(err, errSilent) {
				b.Errorf("asked a nanosecond before the session was closed: %+v, %v", g, err)
			}
		}()
		<-answered
		if c.reason() != errSilent {
			b.Errorf("at the server's limit the session was closed with %v", c.reason())
		}
		b.take(claim("b", "3", ttl)) // in another
	})
}
