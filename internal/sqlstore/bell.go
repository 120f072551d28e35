package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A Bell wakes the waiters of an engine without messages. Each process holds a named lock of
// the engine, its bell, and writes the name into its claims. A waiter blocks in the engine
// until the process of the claim in its way lets go of the bell. A process that dies lets go,
// too. A wake-up is a hint: the row decides.
type Bell interface {
	// To is the name of this process's bell, "" while the process does not hold the bell.
	To() string

	// Hang begins to keep the bell, and waits for the first attempt or the end of ctx.
	Hang(ctx context.Context)

	// Ring lets go of the bell for a moment. Ring does not wait.
	Ring()

	// Wait waits until a bell rings, for a second or so, unless the row of a name has changed
	// since the given version. Wait fails at once if the process waits for as many bells as
	// it may.
	Wait(ctx context.Context, bell, name string, version int64) (Heard, error)

	Close() error
}

// A Heard is what Bell.Wait has noticed.
type Heard int

const (
	Nothing Heard = iota // the bell did not ring
	Rang
	Changed // the row had changed before the wait began
	NoBell  // no process holds the bell
)

// firstLook and lastLook bound the pauses of a waiter that hears no bell. A pause doubles
// after each look at the row.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 500 * time.Millisecond
)

// A Ringing store wakes waiters by a [Bell]. Waiters that hear no bell look at their rows
// in growing pauses.
type Ringing struct {
	*Store
	bell Bell

	hung    sync.Once
	life    context.Context // ends with Close
	end     context.CancelFunc
	looking sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners map[string]map[string]*listening // by key and id
}

// A listening is a watch of a waiting claim.
type listening struct {
	claim driver.Claim
	wake  func(driver.Grant)
	poke  chan struct{} // a request to look at the row now, of one place

	// Guarded by Ringing.mu. A grant counts from the beginning of the last refused Acquire.
	// During an Acquire, that is not known.
	asked  time.Time // zero before the first refusal since the watch began
	asking int       // Acquire calls under way
}

var (
	_ driver.Store   = (*Ringing)(nil)
	_ driver.Watcher = (*Ringing)(nil)
)

// NewRinging returns s with wake-ups through b, which the new store closes. Use only one of
// the two stores.
func NewRinging(s *Store, b Bell) *Ringing {
	r := &Ringing{Store: s, bell: b, listeners: make(map[string]map[string]*listening)}
	r.life, r.end = context.WithCancel(context.Background())
	s.freed = r.freed
	return r
}

// Acquire implements [driver.Store]. The first call waits a little for the bell, so that
// the first claim has a bell, too.
func (r *Ringing) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	r.hung.Do(func() {
		bounded, cancel := context.WithTimeout(ctx, min(firstListen, a.TTL/24))
		defer cancel()
		r.bell.Hang(bounded)
	})
	begin := time.Now()
	r.mu.Lock()
	l := r.listeners[a.Key][a.ID]
	if l != nil {
		l.asking++
	}
	r.mu.Unlock()
	got, err := r.Store.acquire(ctx, asking{Ask: a, from: r.bell.To()})
	g := got.grant
	if l == nil {
		return g, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.asking--
	if err == nil && !g.OK {
		l.asked = begin
	}
	return g, err
}

// Watch implements [driver.Watcher].
func (r *Ringing) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	l := &listening{claim: c, wake: wake, poke: make(chan struct{}, 1)}
	watching, cancel := context.WithCancel(r.life)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		cancel()
		return nil, errClosed
	}
	if r.listeners[c.Key] == nil {
		r.listeners[c.Key] = make(map[string]*listening)
	}
	r.listeners[c.Key][c.ID] = l
	r.looking.Go(func() { r.look(watching, l) })
	return func() {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.listeners[c.Key][c.ID] != l {
			return
		}
		delete(r.listeners[c.Key], c.ID)
		if len(r.listeners[c.Key]) == 0 {
			delete(r.listeners, c.Key)
		}
	}, nil
}

// look looks at the row of a waiter until the watch ends: after the bell of the claim in the
// way has rung, after a release by this process, and after pauses if there is no bell.
func (r *Ringing) look(ctx context.Context, l *listening) {
	for pause, last := firstLook, NoBell; ctx.Err() == nil; {
		heard := r.waitFor(ctx, l)
		again := heard == Changed && last == Changed // The two statements may see different servers.
		last = heard
		if heard != NoBell && !again {
			pause = firstLook
			continue
		}
		timer := time.NewTimer(pause - rand.N(pause/2))
		select {
		case <-timer.C:
			pause = min(2*pause, lastLook)
		case <-l.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// waitFor looks at the row of a waiter, and wakes the waiter if its turn has come. Otherwise
// waitFor waits for the bell of a claim that must end before.
func (r *Ringing) waitFor(ctx context.Context, l *listening) Heard {
	bell, version := r.inTheWay(ctx, l)
	if bell == "" || bell == r.bell.To() {
		return NoBell
	}
	for ctx.Err() == nil {
		// The wait outlives the watch: an interrupted wait would cost the connection.
		heard, err := r.bell.Wait(r.life, bell, escape(l.claim.Key), version)
		if err != nil {
			return NoBell
		}
		if heard != Nothing {
			return heard
		}
	}
	return NoBell
}

// inTheWay looks at the row of a waiter. It wakes the waiter that holds, or that a retry may
// grant. Otherwise it returns the bell of a claim that must end before the waiter is granted,
// "" if there is none, and the version of the row.
func (r *Ringing) inTheWay(ctx context.Context, l *listening) (bell string, version int64) {
	ctx, cancel := context.WithTimeout(ctx, notifyLimit)
	defer cancel()
	leave, err := r.calls.Turn(ctx) // like Acquire, a look leaves a connection to renewals
	if err != nil {
		return "", 0
	}
	defer leave()
	sent := time.Now()
	rows, err := query(ctx, r.Store, expand(someRows, 1), false, []any{escape(l.claim.Key)}, readEntry)
	if err != nil {
		return "", 0
	}
	e := entry{book: new(book.Book)}
	if len(rows) > 0 {
		e = rows[0]
	}
	if e.err != nil {
		l.wake(driver.Grant{}) // to retry, which says why
		return "", 0
	}
	for i := range e.book.Held {
		if held := &e.book.Held[i]; held.ID == l.claim.ID && held.Until > e.now {
			r.grant(l, held, sent.Add(held.Until-e.now))
			return "", 0
		}
	}
	e.book.Prune(book.Moment{Now: e.now, Wall: micros(e.now)}, func(string) bool { return true }) // as a retry would
	if queued(e.book, l.claim.ID) == nil {
		l.wake(driver.Grant{})
		return "", 0
	}
	if before := e.book.Before(l.claim.ID); before != nil {
		return before.Session, e.version
	}
	return "", 0
}

// grant wakes a waiter that holds until the given time.
func (r *Ringing) grant(l *listening, held *book.Entry, until time.Time) {
	r.mu.Lock()
	asked, known := l.asked, l.asking == 0 && !l.asked.IsZero()
	r.mu.Unlock()
	if !known {
		l.wake(driver.Grant{})
		return
	}
	// A later Acquire began after the grant, and is not refused.
	l.wake(driver.Grant{OK: true, Fence: held.Fence, Span: held.Span, TTL: until.Sub(asked)})
}

// freed wakes the waiters of a key after this process has ended a claim on the key.
func (r *Ringing) freed(key string, b *book.Book) {
	r.mu.Lock()
	for _, l := range r.listeners[key] {
		select {
		case l.poke <- struct{}{}:
		default:
		}
	}
	r.mu.Unlock()
	own := r.bell.To()
	listens := func(e book.Entry) bool { return e.Session != "" && e.Session != own }
	if slices.ContainsFunc(b.Held, listens) || slices.ContainsFunc(b.Queue, listens) {
		r.bell.Ring()
	}
}

// Close closes the bell and the Store, see [Store.Close].
func (r *Ringing) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end()
	err := errors.Join(r.bell.Close(), r.Store.Close())
	r.looking.Wait()
	return err
}
