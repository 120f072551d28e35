package sim

import (
	"context"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/callbacks"
)

// Serve is a server that keeps a book for each key, as Redis does. Unlike [Memory], the
// server can fail over to a replica that lacks the last writes.
func Serve() func(w *World) Store {
	return func(w *World) Store {
		return &Server{w: w, books: make(map[string]*book.Book), began: time.Now()}
	}
}

// A Server is the store of [Serve].
type Server struct {
	w     *World
	began time.Time

	mu      sync.Mutex
	books   map[string]*book.Book
	floor   uint64
	past    []version
	release chan struct{} // closed by the next release; nil if nobody waits for a release
	watches []*watch
	clients []*client
}

// A version is a book before a write.
type version struct {
	at    time.Duration
	key   string
	book  *book.Book // nil: the key had no book
	floor uint64
}

// remembered is the longest lag of a replica.
const remembered = 2 * time.Second

type watch struct {
	id   string
	key  string
	wake func(driver.Grant)
}

// Connect implements [Store].
func (s *Server) Connect(p *Process) driver.Store {
	c := &client{Server: s, session: p.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
	return Over(p.Link("store"), c)
}

// Left implements [Store].
func (s *Server) Left() (keys []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment().Now
	for key, b := range s.books {
		if b.Live(now) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Close implements [Store].
func (s *Server) Close() error { return nil }

// FailOver loses the writes within the last lag. Watchers are woken, as by a broken
// connection.
func (s *Server) FailOver(lag time.Duration) {
	s.mu.Lock()
	after := s.moment().Now - lag
	for len(s.past) > 0 && s.past[len(s.past)-1].at >= after {
		v := s.past[len(s.past)-1]
		s.past = s.past[:len(s.past)-1]
		if s.books[v.key] = v.book; v.book == nil {
			delete(s.books, v.key)
		}
		s.floor = v.floor
	}
	watches := slices.Clone(s.watches)
	s.mu.Unlock()
	s.w.Trace.add(Event{Step: Fault, Call: "failover"}, lag)
	for _, w := range watches {
		w.wake(driver.Grant{})
	}
}

// fail implements [failing]. A fail-over often comes just after a release, which is then
// undone.
func (s *Server) fail(r *rand.Rand, ttl time.Duration) bool {
	s.awaitRelease(pick(r, 0, ttl))
	s.w.Judge.Forgot(ttl*5/2 + ttl)
	s.FailOver(time.Millisecond + upto(r, time.Second))
	return true
}

// awaitRelease waits for the next release, but not longer than d.
func (s *Server) awaitRelease(d time.Duration) {
	s.mu.Lock()
	if s.release == nil {
		s.release = make(chan struct{})
	}
	release := s.release
	s.mu.Unlock()
	select {
	case <-release:
	case <-time.After(d):
	}
}

func (s *Server) moment() book.Moment {
	return book.Moment{Now: time.Since(s.began), Wall: time.Now().UnixMicro()}
}

// change changes a book, and returns the calls to make once the mutex is free.
func (s *Server) change(key string, room bool, do func(m book.Moment, b *book.Book) error) (calls []func(), err error) {
	m := s.moment()
	b := s.books[key]
	s.past = append(s.past, version{m.Now, key, clone(b), s.floor})
	if old := slices.IndexFunc(s.past, func(v version) bool { return v.at >= m.Now-remembered }); old > 0 {
		s.past = slices.Delete(s.past, 0, old)
	}
	if b == nil {
		b = new(book.Book)
		s.books[key] = b
	}
	b.Floor = s.floor
	err = do(m, b)
	s.floor = b.Floor
	for _, p := range b.Pushed {
		for _, w := range s.watches {
			if w.id == p.ID {
				calls = append(calls, func() { w.wake(p.Grant) })
			}
		}
	}
	if room && err == nil && len(b.Queue) == 0 {
		for _, w := range s.watches {
			if w.key == key && !b.Has(w.id) {
				calls = append(calls, func() { w.wake(driver.Grant{}) })
			}
		}
	}
	if len(b.Held)+len(b.Queue)+len(b.Tombs) == 0 {
		delete(s.books, key)
	}
	return calls, err
}

func clone(b *book.Book) *book.Book {
	if b == nil {
		return nil
	}
	c := *b
	c.Held, c.Queue, c.Tombs, c.Pushed = slices.Clone(b.Held), slices.Clone(b.Queue), slices.Clone(b.Tombs), nil
	return &c
}

// A client is a Server as seen by one process.
type client struct {
	*Server
	callbacks.Losses
	session string
}

var (
	_ driver.Store     = (*client)(nil)
	_ driver.Watcher   = (*client)(nil)
	_ driver.Notifier  = (*client)(nil)
	_ driver.Inspector = (*client)(nil)
)

// Acquire implements [driver.Store].
func (c *client) Acquire(_ context.Context, a driver.Ask) (g driver.Grant, err error) {
	c.mu.Lock()
	calls, err := c.change(a.Key, false, func(m book.Moment, b *book.Book) (err error) {
		g, err = b.Acquire(m, a, c.session)
		return err
	})
	c.mu.Unlock()
	ring(calls)
	return g, err
}

// Renew implements [driver.Store].
func (c *client) Renew(_ context.Context, rs []driver.Renewal) []error {
	return c.each(len(rs), func(i int) ([]func(), error) {
		return c.change(rs[i].Key, false, func(m book.Moment, b *book.Book) error { return b.Renew(m, rs[i]) })
	})
}

// Release implements [driver.Store].
func (c *client) Release(_ context.Context, rs []driver.Release) []error {
	defer c.released()
	return c.each(len(rs), func(i int) ([]func(), error) {
		return c.change(rs[i].Key, true, func(m book.Moment, b *book.Book) error { return b.Release(m, rs[i]) })
	})
}

// released notifies the waiters for a release.
func (c *client) released() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.release != nil {
		close(c.release)
		c.release = nil
	}
}

// each makes n changes, and then the calls that follow from the changes.
func (c *client) each(n int, change func(i int) (calls []func(), err error)) []error {
	errs := make([]error, n)
	var all []func()
	c.mu.Lock()
	for i := range errs {
		var calls []func()
		calls, errs[i] = change(i)
		all = append(all, calls...)
	}
	c.mu.Unlock()
	ring(all)
	return errs
}

func ring(calls []func()) {
	for _, call := range calls {
		call()
	}
}

// Close implements [driver.Store].
func (c *client) Close() error { return nil }

// Watch implements [driver.Watcher].
func (c *client) Watch(_ context.Context, claim driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &watch{id: claim.ID, key: claim.Key, wake: wake}
	c.watches = append(c.watches, w)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watches = slices.DeleteFunc(c.watches, func(o *watch) bool { return o == w })
	}, nil
}

// Holders implements [driver.Inspector].
func (c *client) Holders(_ context.Context, key string) ([]driver.Holder, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.books[key]; b != nil {
		return b.Holders(c.moment().Now), nil
	}
	return nil, nil
}

// Keys implements [driver.Inspector].
func (c *client) Keys(_ context.Context, _ string) iter.Seq2[string, error] {
	c.mu.Lock()
	keys := slices.Sorted(maps.Keys(c.books))
	c.mu.Unlock()
	return func(yield func(string, error) bool) {
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// Break implements [driver.Inspector].
func (c *client) Break(_ context.Context, key, id string) error {
	var broken book.Entry
	c.mu.Lock()
	calls, err := c.change(key, true, func(m book.Moment, b *book.Book) (err error) {
		if broken, err = b.Break(m, id); err == nil && b.Has(broken.ID) {
			c.w.Judge.Fail(key, "left", c.session, "the store still has the broken claim "+id)
		}
		return err
	})
	clients := c.clients
	c.mu.Unlock()
	for _, owner := range clients { // The loser hears of the loss first, before a new holder begins.
		if err == nil && owner.session == broken.Session {
			owner.Tell(key, broken.ID, driver.ErrBroken)
		}
	}
	ring(calls)
	return err
}
