package caslock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// look is the default of Options.Look.
const look = 500 * time.Millisecond

// Options say how a Store uses its register. nil means the defaults.
type Options struct {
	// Look is the pause between two reads of a key by the first waiter of its queue, if the
	// register is no [Watcher]. Waiters at place n pause n times as long or longer, but at most a
	// third of the life of their place. So a hand-over between processes takes about half of Look.
	// 0 means half a second.
	Look time.Duration
}

// A Store keeps claims in a [Register]. Make a Store with New.
type Store struct {
	register Register
	watcher  Watcher // nil: waiters read
	clock    Clock   // nil: the clock of this process
	look     time.Duration
	began    time.Time

	closing context.Context
	close   context.CancelFunc
	lookers sync.WaitGroup

	mu    sync.Mutex
	desks map[string]*desk
	sweep int // number of desks at which unused desks are looked for
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

var errClosed = errors.New("store is closed")

// New returns a Store over a register. New does no I/O. The caller closes the Store before
// the clients of the register.
func New(r Register, opts *Options) *Store {
	s := &Store{register: r, look: look, began: time.Now(), desks: make(map[string]*desk)}
	s.watcher, _ = r.(Watcher)
	s.clock, _ = r.(Clock)
	if opts != nil && opts.Look > 0 {
		s.look = opts.Look
	}
	s.closing, s.close = context.WithCancel(context.Background())
	return s
}

// Acquire implements [driver.Store]. If the time ends because other processes change the record
// before each swap, the call neither queues a waiter nor extends its place, but the last record
// refuses the claim.
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (g driver.Grant, err error) {
	var invalid error
	refused := false // by a record that the register has shown to this call
	err = s.change(ctx, a.Key, func(v *view) {
		g, invalid = v.acquire(a)
		refused = v.current && v.proved && !g.OK
	})
	if refused && invalid == nil && errors.Is(err, driver.ErrUnwritten) && ctx.Err() != nil {
		g.Kept = 0
		return g, nil
	}
	if err = errors.Join(err, invalid); err != nil {
		return driver.Grant{}, err
	}
	return g, nil
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	key := func(i int) string { return rs[i].Key }
	return s.each(ctx, len(rs), key, func(v *view, i int) error { return v.renew(rs[i]) })
}

// Release implements [driver.Store].
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	key := func(i int) string { return rs[i].Key }
	return s.each(ctx, len(rs), key, func(v *view, i int) error { return v.release(rs[i]) })
}

// keysAtOnce is how many keys one call of Renew or Release changes at the same time.
const keysAtOnce = 32

// each changes n claims, all those of a key by one swap, and different keys at the same time.
func (s *Store) each(ctx context.Context, n int, key func(i int) string, do func(v *view, i int) error) []error {
	errs := make([]error, n)
	parts := make(map[string][]int) // by key: the indices of the claims
	for i := range n {
		parts[key(i)] = append(parts[key(i)], i)
	}
	change := func(key string, part []int) {
		err := s.change(ctx, key, func(v *view) {
			for _, i := range part {
				errs[i] = do(v, i)
			}
		})
		if err != nil {
			for _, i := range part {
				errs[i] = err
			}
		}
	}
	var all sync.WaitGroup
	room := make(chan struct{}, keysAtOnce)
	for key, part := range parts {
		if len(parts) == 1 {
			change(key, part)
			break
		}
		room <- struct{}{} // Every change ends with ctx.
		all.Go(func() {
			change(key, part)
			<-room
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

// Close ends the watches and makes later calls fail. Claims stand until their TTL ends. Close
// waits for calls of the register that waiters have begun.
func (s *Store) Close() error {
	s.close()
	s.mu.Lock()
	desks := s.desks
	s.desks = nil
	s.mu.Unlock()
	for _, d := range desks {
		d.unfollow(true)
		for _, w := range d.waiting() {
			w.wake(driver.Grant{})
		}
	}
	s.lookers.Wait()
	return nil
}

// now is the clock by which this process counts.
func (s *Store) now() time.Duration { return time.Since(s.began) }

// moment is the time of a call.
func (s *Store) moment(ctx context.Context) (book.Moment, error) {
	wall := time.Now()
	if s.clock != nil {
		var err error
		if wall, err = s.clock.Now(ctx); err != nil {
			return book.Moment{}, err
		}
	}
	return book.Moment{Now: s.now(), Wall: wall.UnixMicro()}, nil
}

// later is the present time of a call that began at the time m.
func (s *Store) later(m book.Moment) book.Moment {
	now := s.now()
	return book.Moment{Now: now, Wall: m.Wall + (now - m.Now).Microseconds()}
}

// unwritten marks the error of a call that has changed nothing.
func unwritten(err error) error {
	if errors.Is(err, driver.ErrUnwritten) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
}
