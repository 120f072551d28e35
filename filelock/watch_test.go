package filelock

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/flock"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// pair returns two Stores over one directory, as two processes have. Both poll if onNetwork
// is set.
func pair(t *testing.T, onNetwork bool) (a, b *user) {
	a = in(t, t.TempDir(), nil)
	b = in(t, a.dir, nil)
	a.onNetwork.Store(onNetwork)
	b.onNetwork.Store(onNetwork)
	return a, b
}

// either runs a test with Stores that receive events and with Stores that poll.
func either(t *testing.T, test func(t *testing.T, a, b *user)) {
	for name, onNetwork := range map[string]bool{"events": false, "poll": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := pair(t, onNetwork)
			test(t, a, b)
		})
	}
}

func TestReleaseGrantsTheNext(t *testing.T) {
	either(t, func(t *testing.T, a, b *user) {
		for _, u := range []*user{a, b} {
			holder, next := exclusive("key"), waiting(exclusive("key"))
			fence := a.granted(holder).Fence
			wakes, asked := u.watch(next), time.Now()
			u.refused(next)
			a.release(holder)
			if !inTime(t, asked) {
				return
			}
			g := receive(t, wakes, "a wake")
			for !g.OK { // It may be told to ask again for no reason, but will not.
				if !inTime(t, asked) {
					return
				}
				g = receive(t, wakes, "the grant")
			}
			if g.Fence <= fence || g.Span != 1 || g.TTL <= 0 || g.TTL > next.Alive()+time.Since(asked)+time.Second {
				t.Errorf("woken with %+v", g)
			}
			if err := u.renew(next); err != nil && inTime(t, asked) {
				t.Fatal(err)
			} else if err != nil {
				return
			}
			u.release(next)
		}
	})
}

// A Store that is closed with claims has them no longer, nor places in the queue.
func TestCloseLetsTheNextIn(t *testing.T) {
	either(t, func(t *testing.T, a, b *user) {
		third := in(t, a.dir, nil)
		third.onNetwork.Store(a.onNetwork.Load())
		next := waiting(exclusive("key"))
		a.granted(exclusive("key"))
		third.refused(waiting(exclusive("key")))
		b.refused(next)
		wakes := b.watch(next)
		b.refused(next)
		a.must(third.Close(), a.Close())
		for !receive(t, wakes, "a wake that leads to the grant").OK && !b.acquire(next).OK {
		}
		b.must(b.renew(next))
	})
}

func TestPlaceOfTheDeadIsNotGranted(t *testing.T) {
	a, b := pair(t, false)
	third := in(t, a.dir, nil)
	holder, next := exclusive("key"), waiting(exclusive("key"))
	a.granted(holder)
	third.refused(waiting(exclusive("key")))
	asked := time.Now()
	b.refused(next)
	a.must(third.Close())
	a.release(holder)
	if err := b.renew(next); err != nil && inTime(t, asked) { // Release has passed over the dead one.
		t.Error(err)
	}
}

func TestNotify(t *testing.T) {
	either(t, func(t *testing.T, a, b *user) {
		type loss struct {
			id  string
			err error
		}
		losses := make(chan loss, 10)
		stop := a.Notify(func(key, id string, err error) { losses <- loss{id, err} })
		c, released := exclusive("key"), exclusive("released")
		a.granted(c)
		a.granted(released)
		a.release(released)
		b.must(b.Break(t.Context(), "key", driver.PublicID(c.ID)))
		if l := receive(t, losses, "the loss"); l.id != c.ID || !errors.Is(l.err, driver.ErrBroken) {
			t.Errorf("told of the loss of %s: %v, want %s: %v", l.id, l.err, c.ID, driver.ErrBroken)
		}
		stop()
		c = exclusive("key")
		a.granted(c)
		a.must(a.Break(t.Context(), "key", driver.PublicID(c.ID)), a.Close())
		if len(losses) > 0 {
			t.Errorf("told of %+v after stop", <-losses)
		}
	})
}

// A claim that is broken in the queue is reported like one that holds: its owner has
// to ask with another id.
func TestNotifyOfABrokenWaiter(t *testing.T) {
	either(t, func(t *testing.T, a, b *user) {
		losses := make(chan error, 10)
		c := waiting(exclusive("key"))
		b.granted(exclusive("key"))
		a.Notify(func(_, id string, err error) {
			if id != c.ID {
				return
			}
			select {
			case losses <- err:
			default: // Each poll reports the loss again.
			}
		})
		a.refused(c)
		wakes, asked := a.watch(c), time.Now()
		a.refused(c)
		if err := b.Break(t.Context(), "key", driver.PublicID(c.ID)); err != nil && inTime(t, asked) {
			t.Fatal(err)
		} else if err != nil {
			return
		}
		if err := receive(t, losses, "the loss"); !errors.Is(err, driver.ErrBroken) {
			t.Errorf("told of %v, want %v", err, driver.ErrBroken)
		}
		receive(t, wakes, "a wake after it")
	})
}

// To listen costs more than a short lock does.
func TestNobodyListensForAShortLock(t *testing.T) {
	a, _ := pair(t, false)
	a.Notify(func(key, id string, err error) { t.Errorf("told of the loss of %q: %v", key, err) })
	started := func() bool {
		a.watcher.startDelayed() // as if watchDelay were over
		a.watcher.mu.Lock()
		defer a.watcher.mu.Unlock()
		return a.watcher.started
	}
	c, began := exclusive("key"), time.Now()
	a.granted(c)
	a.release(c)
	switch listens := started(); {
	case time.Since(began) >= watchDelay:
		unproved.Logf(t, "the lock was no short one")
		return
	case listens:
		t.Error("listens though nothing is held")
	}
	a.granted(exclusive("key"))
	if !started() {
		t.Error("does not listen though a claim is held")
	}
}

// When the system has dropped events, everybody looks.
func TestEventsLost(t *testing.T) {
	a, b := pair(t, false)
	held := exclusive("held")
	losses := make(chan error, 10)
	a.Notify(func(key, id string, err error) { losses <- err })
	a.granted(held)
	b.granted(exclusive("key"))
	next := waiting(exclusive("key"))
	a.refused(next)
	wakes := a.watch(next)
	a.watcher.handle("", false)
	if g := receive(t, wakes, "the wake"); g.OK {
		t.Errorf("woken with %+v, want to be asked again", g)
	}
	if len(losses) > 0 {
		t.Errorf("told of the loss of a claim that holds: %v", <-losses)
	}
}

func TestWatchersAreForgotten(t *testing.T) {
	a, _ := pair(t, false)
	a.maxOpen = 16
	for range 3 * a.maxOpen {
		c := waiting(exclusive(exclusive("").ID))
		stop, err := a.Watch(t.Context(), c.Claim, func(driver.Grant) {})
		a.must(err)
		stop()
		stop()
	}
	a.watcher.mu.Lock()
	defer a.watcher.mu.Unlock()
	if a.watcher.waiting != 0 || len(a.watcher.watched) > a.maxOpen+1 {
		t.Errorf("%d claims wait, %d keys are known", a.watcher.waiting, len(a.watcher.watched))
	}
}

func TestSweep(t *testing.T) {
	dead := in(t, t.TempDir(), nil)
	dead.granted(exclusive("key"))
	// As if its process had been killed: the lock is gone, the file is not.
	session := dead.session.Load()
	flock.Unlock(uintptr(session.h))
	u := in(t, dead.dir, nil)
	u.granted(exclusive("unrelated"))
	u.background.Wait()
	if _, err := os.Stat(u.sessionPath(session.id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the session of the dead is still there: %v", err)
	}
	if _, err := os.Stat(u.sessionPath(u.session.Load().id)); err != nil {
		t.Error(err)
	}
	u.granted(exclusive("key"))
}

func TestLeaveOutlivesTheStore(t *testing.T) {
	a, b := pair(t, false)
	c := exclusive("key")
	a.granted(c)
	c.TTL = 300 * time.Millisecond
	sent := time.Now()
	a.must(a.Renew(t.Context(), []driver.Renewal{{Claim: c.Claim, Leave: true}})...)
	a.must(a.Close())
	servers.Until(t, "the end of the claim", func() bool { return b.acquire(exclusive("key")).OK })
	if stood := time.Since(sent); stood < c.TTL {
		t.Errorf("the claim stood for %v after its Store was closed, want %v", stood, c.TTL)
	}
}

// A raised token is in the file: nobody who opens that later gets it again.
func TestRaisedTokenOutlivesTheStore(t *testing.T) {
	dir := t.TempDir()
	c := exclusive("job")
	u := in(t, dir, nil)
	fence := u.granted(c).Fence + driver.MaxLead/2
	u.must(u.Renew(t.Context(), []driver.Renewal{{Claim: c.Claim, Fence: fence}})...)
	u.must(u.Close())
	if g := in(t, dir, nil).granted(exclusive("job")); g.Fence <= fence {
		t.Errorf("a store that was opened later gave token %d after one was raised to %d", g.Fence, fence)
	}
}
