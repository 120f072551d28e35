package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/silence"
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

// A core is what calls, holds, the renewer and the cleaner of some keys share: the store, the
// clock, and the table behind the mutex.
type core struct {
	Config
	watcher   driver.Watcher // nil if the store cannot push
	unwatched atomic.Bool    // the last watch failed
	local     bool           // the store is a driver.Local
	clock     *boottime.Clock
	waiters   sync.Pool      // for reuse
	closed    *atomic.Bool   // set by Close, for all cores
	closing   chan struct{}  // closed by Close a moment later
	busy      sync.WaitGroup // calls, and goroutines of the engine: Close waits for them
	sooner    chan struct{}  // makes the renewer look at once
	rounds    chan struct{}  // a place for every round that may run

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

// context returns the context of one call to the store for a claim, and what to end after the
// call. The context of a local store has no limit, and nothing to end.
func (c *core) context(parent context.Context, l *lease, limit time.Time) (context.Context, *bounded.Context) {
	if c.local {
		return parent, nil
	}
	ctx := l.context(parent, limit)
	return ctx, ctx
}

// endClaim makes one call that ends a claim, and returns the answer.
func endClaim[T any](c *core, l *lease, now time.Time, call func(context.Context, []T) []error, last []T) error {
	ctx, bound := c.context(context.Background(), l, now.Add(callLimit(l.claim().TTL)))
	defer bound.End()
	if errs := call(ctx, last); len(errs) > 0 {
		return errs[0]
	}
	return nil
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

// The pauses after an error of the store.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 250 * time.Millisecond
)

// jitter spreads d over 80 to 100 per cent of d.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/5+1))
}

// inherit makes the next hold of a claim, with the next token.
func (c *core) inherit(t *table, l *lease, bounds Bounds, now time.Duration) *Hold {
	l.fence++
	l.spare--
	h := newHold(c, l, bounds, now)
	c.lookSooner(t.agenda.move(l, now))
	return h
}

// lookSooner makes the renewer look at once, if it has to look sooner.
func (c *core) lookSooner(sooner bool) {
	if !sooner {
		return
	}
	select {
	case c.sooner <- struct{}{}:
	default:
	}
}

// newWaiter returns a waiter, reused if possible.
func (c *core) newWaiter(r *Request) *waiter {
	w, _ := c.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{ready: make(chan bool, 2)}
	}
	w.Terms, w.Bounds = r.Terms, r.Bounds
	return w
}

// refusalLocked explains a refusal that needed no store.
func (c *core) refusalLocked(t *turn) *Refusal {
	switch {
	case len(t.leases) > 0:
		l, now := t.leases[0], c.now()
		r := &Refusal{Here: true, Owner: c.Owner, Note: l.claim().Note, Since: time.Now().Add(l.began() - now)}
		if left, ok := l.remaining(now); ok {
			r.Left = max(left, 0)
		}
		return r
	case t.refused():
		return t.refusal
	}
	return &Refusal{Owner: c.Owner}
}

// explain is the error of a wait that ends because of cause; nil stands for Wait. held is the
// last refusal, and failure is the last failure of the store; both may be nil. The error matches
// cause, held and failure.
func (c *core) explain(cause error, held *Refusal, failure error) error {
	switch {
	case held != nil && cause != nil:
		cause = fmt.Errorf("%w while %w", cause, c.Words.Held(held))
	case held != nil:
		cause = c.Words.Held(held)
	case cause == nil && failure != nil:
		return failure
	case cause == nil:
		return c.Words.Held(new(Refusal))
	}
	return silence.Cut(cause, failure)
}
