package drivertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// A ledger is the storage of a small store: a book per key, and the ways of the store.
type ledger struct {
	ways
	mu        sync.Mutex
	start     time.Time
	books     map[string]*book.Book
	newer     map[string]bool // the keys whose records this store cannot read
	clerks    int
	listeners map[*listener]bool
	notices   map[*notice]bool
}

// ways are the actions of a store. A broken store does one action wrong. The functions are
// called with the mutex of the ledger held.
type ways struct {
	key     func(key string) string
	acquire func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error)
	renew   func(b *book.Book, m book.Moment, r driver.Renewal) error
	release func(b *book.Book, m book.Moment, r driver.Release) error
	errs    func(errs []error) []error
	wake    func(b *book.Book, p book.Push) (g driver.Grant, wake bool)
	holders func(b *book.Book, now time.Duration) []driver.Holder
	live    func(b *book.Book, now time.Duration) bool
	begins  func(key, prefix string) bool
	breaks  func(b *book.Book, m book.Moment, id string) error
	close   func(books map[string]*book.Book, clerk string)
	meets   func(c driver.Claim) error // the answer to a call that meets an unreadable record
	heeds   func(ctx context.Context) error
	hangs   func(ctx context.Context) error // for a server that does not answer
	refused func(ctx context.Context) error // by a server that cannot be reached
	check   func() (warnings []string, err error)
	create  func(books map[string]*book.Book) error
	schema  []string
	age     func(passed time.Duration) time.Duration
	minTTL  time.Duration
	wrap    func(clerk) driver.Store
	tells   func(clerk string, e book.Entry) bool
	single  bool    // every client has a separate ledger
	noisy   bool    // the end of a claim wakes every watch
	lacks   Feature // as declared in the harness
}

// right is the ways of a store that keeps every rule.
func right() ways {
	return ways{
		key: func(key string) string { return key },
		acquire: func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
			return b.Acquire(m, a, "")
		},
		renew:   (*book.Book).Renew,
		release: (*book.Book).Release,
		errs:    func(errs []error) []error { return errs },
		wake:    func(_ *book.Book, p book.Push) (driver.Grant, bool) { return p.Grant, true },
		holders: (*book.Book).Holders,
		live:    (*book.Book).Live,
		begins:  strings.HasPrefix,
		breaks: func(b *book.Book, m book.Moment, id string) error {
			_, err := b.Break(m, id)
			return err
		},
		close: func(map[string]*book.Book, string) {},
		meets: func(c driver.Claim) error { return newer.Check(c.Key, 2, 1, newer.Passes) },
		heeds: context.Context.Err,
		hangs: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		refused: func(context.Context) error { return errRefused },
		check:   func() ([]string, error) { return []string{"all is forgotten with the test: want a disk"}, nil },
		create:  func(map[string]*book.Book) error { return nil },
		schema:  []string{"take a new ledger"},
		age:     func(passed time.Duration) time.Duration { return passed },
		minTTL:  time.Millisecond,
		wrap:    func(c clerk) driver.Store { return c },
		tells:   func(clerk string, e book.Entry) bool { return e.Session == clerk },
	}
}

// A listener is one watch.
type listener struct {
	key, id string
	wake    func(driver.Grant)
}

// A notice is the subscription of a client to its losses.
type notice struct {
	clerk string
	lost  func(key, id string, err error)
}

// A clerk is a client of a ledger. Its name is the session of its claims.
type clerk struct {
	*ledger
	name string
	wire *wire
}

// A wire is the way to a ledger, as if the ledger were a server.
type wire struct{ silent, down atomic.Bool }

func (w *wire) Blackhole(on bool) { w.silent.Store(on) }
func (w *wire) Refuse(on bool)    { w.down.Store(on) }
func (w *wire) Reset()            {}

var errRefused = errors.New("connection refused")

// reaches says why a call does not reach the ledger.
func (c clerk) reaches(ctx context.Context) error {
	switch {
	case c.wire.silent.Load():
		return c.hangs(ctx)
	case c.wire.down.Load():
		return c.refused(ctx)
	}
	return nil
}

var (
	_ driver.Store     = clerk{}
	_ driver.Watcher   = clerk{}
	_ driver.Notifier  = clerk{}
	_ driver.Inspector = clerk{}
	_ driver.Creator   = clerk{}
	_ driver.Ager      = clerk{}
)

// ledgers is the harness of a ledger with these ways.
func ledgers(w ways) Harness {
	var mu sync.Mutex
	made := make(map[testing.TB]*ledger)
	open := func(t testing.TB) (driver.Store, Link) {
		mu.Lock()
		defer mu.Unlock()
		if made[t] == nil || w.single {
			made[t] = &ledger{
				ways: w, start: time.Now(), books: make(map[string]*book.Book), newer: make(map[string]bool),
				listeners: make(map[*listener]bool), notices: make(map[*notice]bool),
			}
		}
		made[t].clerks++
		link := new(wire)
		return w.wrap(clerk{made[t], fmt.Sprint(made[t].clerks), link}), link
	}
	return Harness{
		Bubble: true,
		MinTTL: time.Millisecond,
		Lacks:  w.lacks,
		Open: func(t testing.TB) driver.Store {
			store, _ := open(t)
			return store
		},
		Linked: open,
		Newer: func(t testing.TB, key string) func() string {
			mu.Lock()
			defer mu.Unlock()
			l := made[t]
			l.mu.Lock()
			defer l.mu.Unlock()
			l.newer[key] = true
			return func() string {
				l.mu.Lock()
				defer l.mu.Unlock()
				return fmt.Sprintf("%+v", *l.books[key])
			}
		},
	}
}

// reads says why the record of a claim's key cannot be read.
func (l *ledger) reads(c driver.Claim) error {
	if !l.newer[c.Key] {
		return nil
	}
	return l.meets(c)
}

func (l *ledger) moment() book.Moment {
	return book.Moment{Now: time.Since(l.start), Wall: time.Now().UnixMicro()}
}

// with runs f with the book of a key, then wakes the granted waiters.
func (l *ledger) with(key string, f func(*book.Book, book.Moment)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[l.key(key)]
	if b == nil {
		b = &book.Book{}
		l.books[l.key(key)] = b
	}
	held := len(b.Held)
	f(b, l.moment())
	for listener := range l.listeners {
		if l.noisy && len(b.Held) < held && listener.key == key {
			listener.wake(driver.Grant{})
		}
	}
	for _, push := range b.Pushed {
		grant, wake := l.wake(b, push)
		for listener := range l.listeners {
			if wake && listener.key == key && listener.id == push.ID {
				listener.wake(grant)
			}
		}
	}
	b.Pushed = b.Pushed[:0]
}

func (c clerk) Acquire(ctx context.Context, a driver.Ask) (g driver.Grant, err error) {
	if err := c.heeds(ctx); err != nil {
		return driver.Grant{}, err
	}
	if err := c.reaches(ctx); err != nil {
		return driver.Grant{}, err
	}
	if a.TTL < c.minTTL {
		return driver.Grant{}, fmt.Errorf("%w: TTL %v (want at least %v)", driver.ErrInvalid, a.TTL, c.minTTL)
	}
	c.with(a.Key, func(b *book.Book, m book.Moment) {
		if err = c.reads(a.Claim); err != nil {
			return
		}
		g, err = c.acquire(b, m, a)
		if e := entry(b, a.ID); e != nil {
			e.Session = c.name
		}
	})
	return g, err
}

func (c clerk) Renew(ctx context.Context, rs []driver.Renewal) []error {
	return each(ctx, c, rs, func(r driver.Renewal) driver.Claim { return r.Claim }, c.renew)
}

func (c clerk) Release(ctx context.Context, rs []driver.Release) []error {
	return each(ctx, c, rs, func(r driver.Release) driver.Claim { return r.Claim }, c.release)
}

// each makes a call for every renewal or release with a readable record.
func each[R any](ctx context.Context, c clerk, rs []R, of func(R) driver.Claim, call func(*book.Book, book.Moment, R) error) []error {
	if err := c.reaches(ctx); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	errs := make([]error, len(rs))
	for i, r := range rs {
		claim := of(r)
		c.with(claim.Key, func(b *book.Book, m book.Moment) {
			if errs[i] = c.reads(claim); errs[i] == nil {
				errs[i] = call(b, m, r)
			}
		})
	}
	return c.errs(errs)
}

func (c clerk) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close(c.books, c.name)
	return nil
}

func (c clerk) Watch(ctx context.Context, claim driver.Claim, wake func(driver.Grant)) (func(), error) {
	if err := c.reaches(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &listener{claim.Key, claim.ID, wake}
	c.listeners[l] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, l)
	}, nil
}

func (c clerk) Holders(ctx context.Context, key string) (holders []driver.Holder, err error) {
	if err := c.reaches(ctx); err != nil {
		return nil, err
	}
	c.with(key, func(b *book.Book, m book.Moment) {
		if err = c.reads(driver.Claim{Key: key}); err == nil {
			holders = c.holders(b, m.Now)
		}
	})
	return holders, err
}

func (c clerk) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := c.reaches(ctx); err != nil {
			yield("", err)
			return
		}
		c.mu.Lock()
		keys := slices.Collect(maps.Keys(c.books))
		c.mu.Unlock()
		for _, key := range keys {
			live := false
			c.with(key, func(b *book.Book, m book.Moment) { live = c.live(b, m.Now) })
			if live && c.begins(key, prefix) && !yield(key, nil) {
				return
			}
		}
	}
}

func (c clerk) Break(ctx context.Context, key, id string) (err error) {
	if err := c.reaches(ctx); err != nil {
		return err
	}
	c.with(key, func(b *book.Book, m book.Moment) {
		before := slices.Concat(b.Held, b.Queue)
		if err = c.reads(driver.Claim{Key: key}); err == nil {
			err = c.breaks(b, m, id)
		}
		for _, e := range before {
			gone := !slices.ContainsFunc(slices.Concat(b.Held, b.Queue), func(o book.Entry) bool { return o.ID == e.ID })
			for n := range c.notices {
				if gone && c.tells(n.clerk, e) {
					n.lost(key, e.ID, driver.ErrBroken)
				}
			}
		}
	})
	return err
}

func (c clerk) Notify(lost func(key, id string, err error)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &notice{c.name, lost}
	c.notices[n] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.notices, n)
	}
}

func (c clerk) Check(ctx context.Context) ([]string, error) {
	if err := c.reaches(ctx); err != nil {
		return nil, err
	}
	return c.check()
}

func (c clerk) Create(ctx context.Context) error {
	if err := c.reaches(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.create(c.books)
}

func (c clerk) Schema() []string { return c.schema }

func (c clerk) Age(ctx context.Context) (time.Duration, error) {
	return c.age(time.Since(c.start)), c.reaches(ctx)
}
