package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/bounded"
)

// A Config is the settings of an [Engine].
type Config struct {
	Store    driver.Store
	Owner    string        // names the process to people
	Poll     time.Duration // the longest sleep between two tries if the store cannot wake waiters
	Handle   func() *Hold  // makes the caller's handle, and returns the hold in it
	Words    Words
	Hooks    Hooks
	Contexts bool // a hook needs the context of a hold's call
}

// A core is what calls, holds, the renewer and the cleaner share: the store, the clock, and
// the table behind the mutex.
type core struct {
	Config
	watcher      driver.Watcher // nil if the store cannot push
	local        bool           // the store is a driver.Local
	deaf         atomic.Bool    // the last watch failed
	clock        *boottime.Clock
	waiters      sync.Pool      // for reuse
	closing      chan struct{}  // closed by Close
	busy         sync.WaitGroup // calls that may still use the store
	kick         chan struct{}  // the renewer looks at once
	startRenewer func()

	mu      sync.Mutex
	guarded table // reached through lock
}

// lock locks the mutex and returns the table. A function with a *table therefore runs with
// the mutex locked; so do the methods of turns, of leases in a turn, and of the agenda.
func (c *core) lock() *table {
	c.mu.Lock()
	return &c.guarded
}

// unlock ends the use of the table.
func (c *core) unlock() { c.mu.Unlock() }

// now is the time since the engine was made, time asleep included.
func (c *core) now() time.Duration { return c.clock.Now() }

// arrival is when the answer to a request that was sent at that time has arrived. To a local
// store it is sent: a pause between the two is like a pause after the call.
func (c *core) arrival(sent time.Duration) time.Duration {
	if c.local {
		return sent
	}
	return c.now()
}

// context returns the context of one call to the store for a claim, and what to end after the
// call. The context of a local store has no limit, and nothing to end.
func (c *core) context(parent context.Context, l *lease, limit time.Time) (context.Context, *bounded.Context) {
	if c.local {
		return parent, nil
	}
	ctx := l.context(parent, limit)
	return ctx, ctx
}

// sleep returns why the sleep was cut short, nil after a full sleep.
func (c *core) sleep(ctx context.Context, d time.Duration) error {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closing:
		return ErrClosed
	}
}

// keep puts a lease into the agenda. The first lease starts the renewer.
func (c *core) keep(t *table, l *lease, now time.Duration) {
	if !t.renewing {
		t.renewing = true
		c.startRenewer()
	}
	c.hurry(t.agenda.add(l, now))
}

// inherit makes the next hold of a claim, with the next token.
func (c *core) inherit(t *table, l *lease, term Term, now time.Duration) *Hold {
	l.fence++
	l.spare--
	h := newHold(c, l, term, now)
	c.hurry(t.agenda.move(l, now))
	return h
}

// hurry makes the renewer look at once, if it has to look sooner.
func (c *core) hurry(sooner bool) {
	if !sooner {
		return
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// newWaiter returns a waiter, reused if possible.
func (c *core) newWaiter(r *Request) *waiter {
	w, _ := c.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{ready: make(chan bool, 2)}
	}
	*w = waiter{Terms: r.Terms, Term: r.Term, ready: w.ready}
	return w
}

// refusalLocked explains a refusal that needed no store.
func (c *core) refusalLocked(t *turn) *Refusal { return t.blocked(c.Owner, c.now(), time.Now()) }
