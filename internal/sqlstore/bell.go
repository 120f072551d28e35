package sqlstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/pace"
)

// A Bell wakes the waiters of an engine without messages. Each process holds a named lock of
// the engine, its bell, and writes the name into its claims. A waiter blocks in the engine
// until the process of the claim in its way lets go of the bell. A process that dies lets go,
// too. A wake-up is a hint: the row decides.
type Bell interface {
	// To is the name of this process's bell, "" while the process does not hold the bell.
	To() string

	// Hang begins to keep the bell. The first call waits for the first attempt, for within
	// at most, or until ctx ends. Further calls return at once.
	Hang(ctx context.Context, within time.Duration)

	// Ring lets go of the bell for a moment. Ring does not wait.
	Ring()

	// Wait waits until a bell rings, for a second or so, unless the row of a name, as a parameter
	// of the client, has changed since the given version. Wait fails at once if the process waits for as many bells as
	// it may.
	Wait(ctx context.Context, bell string, name any, version int64) (Heard, error)

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

// lastLook bounds the pauses of a waiter that hears no bell.
const lastLook = 500 * time.Millisecond

// A Ringing store wakes waiters by a [Bell]. Waiters that hear no bell look at their rows
// in growing pauses.
//
// A wake-up brings no grant, even if the row has the grant. The row may show what the engine
// has not committed yet, or has not yet written to its log. The Acquire of the woken waiter
// writes the row, so the grant is as safe as any write.
type Ringing struct {
	*Store
	bell Bell

	life    context.Context // ends with Close
	end     context.CancelFunc
	looking sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners map[string]map[string]*listening // by key and id
	waits     map[place]*wait
}

// A listening is a watch of a waiting claim.
type listening struct {
	claim driver.Claim
	wake  func(driver.Grant)
	poke  chan struct{} // a request to look at the row now, of one place
}

func (l *listening) look() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// A place is where waiters wait for a bell.
type place struct{ bell, key string }

// A wait is one Bell.Wait. The waiters of a place share the wait. The wait outlives them,
// because an interrupted wait would cost the connection, and serves the next waiter.
type wait struct {
	version int64
	over    chan struct{}

	// Set before over is closed.
	heard Heard
	err   error
}

var (
	_ driver.Store   = (*Ringing)(nil)
	_ driver.Watcher = (*Ringing)(nil)
)

// NewRinging returns s with wake-ups through b, which the new store closes. Use only one of
// the two stores.
func NewRinging(s *Store, b Bell) *Ringing {
	r := &Ringing{Store: s, bell: b, listeners: make(map[string]map[string]*listening), waits: make(map[place]*wait)}
	r.life, r.end = context.WithCancel(context.Background())
	s.freed = r.freed
	return r
}

// Acquire implements [driver.Store]. The first call waits a little for the bell, so that
// the first claim has a bell, too.
func (r *Ringing) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	r.bell.Hang(ctx, min(firstListen, a.TTL/24))
	got, err := r.Store.acquire(ctx, asking{Ask: a, from: r.bell.To()})
	if !got.grant.OK {
		r.mu.Lock()
		defer r.mu.Unlock()
		if l := r.listeners[a.Key][a.ID]; l != nil {
			l.look()
		}
	}
	return got.grant, err
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
	r.looking.Go(func() { r.watch(watching, l) })
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

// watch wakes a waiter again and again until the watch ends. The waiter asks after each
// wake-up, as after Watch. A look at the row before the refusal would be in vain.
func (r *Ringing) watch(ctx context.Context, l *listening) {
	var p pace.Pace
	hasty := true
	for {
		select {
		case <-l.poke:
		case <-ctx.Done():
			return
		}
		rang := r.listen(ctx, l, &p, hasty)
		if ctx.Err() != nil {
			return
		}
		if rang {
			hasty = false // If the waiter is refused again, the ring was for a different key.
			select {
			case <-l.poke: // of an earlier refusal
			default:
			}
		}
		l.wake(driver.Grant{})
		if !rang {
			pause := p.Next(0, lastLook)
			sleep(ctx, pause/2, pause) // A broken claim is refused again, and has no place.
		}
	}
}

// listen returns when the turn of a waiter has come, or the watch has ended. Until then, listen
// looks at the row: after the bell of the claim in the way has rung, after a release by this
// process, and after pauses if there is no bell. If hasty, listen also returns when the holder's bell
// has rung for the first waiter: rang. The turn has probably come, and the Acquire of the waiter looks.
func (r *Ringing) listen(ctx context.Context, l *listening, p *pace.Pace, hasty bool) (rang bool) {
	for last := NoBell; ; {
		s, waits := r.inTheWay(ctx, l)
		if !waits || ctx.Err() != nil {
			return false
		}
		heard := NoBell
		if s.bell != "" && s.bell != r.bell.To() {
			heard = r.hear(ctx, place{s.bell, l.claim.Key}, s.version)
		}
		again := heard == Changed && last == Changed // The two statements may see different servers.
		last = heard
		if heard != NoBell && !again {
			*p = pace.Pace{}
			if hasty && heard == Rang && s.ahead == 0 {
				return true
			}
			continue
		}
		timer := time.NewTimer(pace.Spread(p.Next(time.Duration(s.ahead)*pace.First, lastLook)))
		select {
		case <-timer.C:
		case <-l.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// A standing is what a waiter has found in the row.
type standing struct {
	bell    string // of a claim that must end before the waiter is granted, "" if there is none
	ahead   int    // claims before the waiter in the queue
	version int64
}

// inTheWay looks at the row of a waiter, and reports whether the waiter still waits.
func (r *Ringing) inTheWay(ctx context.Context, l *listening) (s standing, waits bool) {
	leave, err := r.calls.Turn(ctx) // like Acquire, a look leaves a connection to renewals
	if err != nil {
		return s, true
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.life, notifyLimit) // An interrupted look would cost the connection.
	defer cancel()
	rows, err := query(ctx, r.Store, expand(someRows, 1), false, []any{r.parameter(escape(l.claim.Key))}, readEntry)
	switch {
	case err != nil:
		return s, true
	case len(rows) == 0 || rows[0].err != nil:
		return s, false // The retry returns the error.
	}
	e := rows[0]
	e.book.Prune(book.Moment{Now: e.now, Wall: micros(e.now)}, func(string) bool { return true }) // as a retry would
	s.version = e.version
	s.ahead = slices.IndexFunc(e.book.Queue, func(e book.Entry) bool { return e.ID == l.claim.ID })
	if before := e.book.Before(l.claim.ID); before != nil {
		s.bell = before.Session
	}
	return s, s.ahead >= 0
}

// hear waits until a bell has rung, unless the row has changed since the version.
func (r *Ringing) hear(ctx context.Context, at place, version int64) Heard {
	for {
		w := r.wait(at, version)
		if w == nil {
			return Changed
		}
		select {
		case <-w.over:
		case <-ctx.Done():
			return NoBell
		}
		switch {
		case w.err != nil:
			return NoBell
		case w.heard != Nothing:
			return w.heard
		}
	}
}

// wait returns the wait under way at a place, or begins a wait. It returns nil if the wait
// under way began with a newer row: a ring for the row of this version may have come before.
func (r *Ringing) wait(at place, version int64) *wait {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.waits[at]; w != nil {
		if w.version > version {
			return nil
		}
		return w
	}
	w := &wait{version: version, over: make(chan struct{})}
	r.waits[at] = w
	r.looking.Go(func() {
		defer close(w.over)
		w.heard, w.err = r.bell.Wait(r.life, at.bell, r.parameter(escape(at.key)), version)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waits, at)
	})
	return w
}

// freed wakes the waiters of a key after this process has ended a claim on the key. A waiter
// of a different process may wait for the bell, whether or not that process has a bell.
func (r *Ringing) freed(key string, b *book.Book) {
	r.mu.Lock()
	for _, l := range r.listeners[key] {
		l.look()
	}
	r.mu.Unlock()
	own := r.bell.To()
	foreign := func(e book.Entry) bool { return e.Session != own }
	if slices.ContainsFunc(b.Held, foreign) || slices.ContainsFunc(b.Queue, foreign) {
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
