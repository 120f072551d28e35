package drivertest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A ledger is the storage of a small store: one book per key, and the ways in
// which it does each thing.
type ledger struct {
	ways
	mu        sync.Mutex
	start     time.Time
	books     map[string]*book.Book
	clerks    int
	listeners map[*listener]bool
	notices   map[*notice]bool
}

// ways are what a store does. A broken store does one of them wrong. Each
// function is called with the mutex of the ledger held.
type ways struct {
	key     func(key string) string
	acquire func(b *book.Book, m book.Moment, c driver.Claim) (driver.Grant, error)
	renew   perClaim
	release perClaim
	errs    func(errs []error) []error
	wake    func(b *book.Book, p book.Push) (g driver.Grant, wake bool)
	holders func(b *book.Book, now time.Duration) []driver.Holder
	live    func(b *book.Book, now time.Duration) bool
	begins  func(key, prefix string) bool
	breaks  func(b *book.Book, m book.Moment, id string) error
	close   func(books map[string]*book.Book, clerk string)
	heeds   func(ctx context.Context) error
	check   func() (warnings []string, err error)
	create  func(books map[string]*book.Book) error
	schema  []string
	age     func(passed time.Duration) time.Duration
	minTTL  time.Duration
	wrap    func(clerk) driver.Store
	tells   func(clerk string, e book.Entry) bool
	single  bool    // each client has a ledger of its own
	noisy   bool    // a claim that ends wakes all who watch
	lacks   Feature // as the harness says
}

type perClaim = func(b *book.Book, m book.Moment, c driver.Claim) error

// right is the ways of a store that keeps every rule.
func right() ways {
	return ways{
		key: func(key string) string { return key },
		acquire: func(b *book.Book, m book.Moment, c driver.Claim) (driver.Grant, error) {
			return b.Acquire(m, c, "")
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
		close:  func(map[string]*book.Book, string) {},
		heeds:  context.Context.Err,
		check:  func() ([]string, error) { return []string{"all is forgotten with the test: want a disk"}, nil },
		create: func(map[string]*book.Book) error { return nil },
		schema: []string{"take a new ledger"},
		age:    func(passed time.Duration) time.Duration { return passed },
		minTTL: time.Millisecond,
		wrap:   func(c clerk) driver.Store { return c },
		tells:  func(clerk string, e book.Entry) bool { return e.Session == clerk },
	}
}

// A listener is one watch.
type listener struct {
	key, id string
	wake    func(driver.Grant)
}

// A notice is what a client wants to know of its losses.
type notice struct {
	clerk string
	lost  func(key, id string, err error)
}

// A clerk is a client of a ledger. Its name is the session of its claims.
type clerk struct {
	*ledger
	name string
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
	return Harness{
		Bubble: true,
		MinTTL: time.Millisecond,
		Lacks:  w.lacks,
		Open: func(t testing.TB) driver.Store {
			mu.Lock()
			defer mu.Unlock()
			if made[t] == nil || w.single {
				made[t] = &ledger{
					ways: w, start: time.Now(), books: make(map[string]*book.Book),
					listeners: make(map[*listener]bool), notices: make(map[*notice]bool),
				}
			}
			made[t].clerks++
			return w.wrap(clerk{made[t], fmt.Sprint(made[t].clerks)})
		},
	}
}

func (l *ledger) moment() book.Moment {
	return book.Moment{Now: time.Since(l.start), Wall: time.Now().UnixMicro()}
}

// with runs f with the book of a key, then wakes those whom it let in.
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

func (c clerk) Acquire(ctx context.Context, claim driver.Claim) (g driver.Grant, err error) {
	if err := c.heeds(ctx); err != nil {
		return driver.Grant{}, err
	}
	if claim.TTL < c.minTTL {
		return driver.Grant{}, fmt.Errorf("%w: TTL %v (want at least %v)", driver.ErrInvalid, claim.TTL, c.minTTL)
	}
	c.with(claim.Key, func(b *book.Book, m book.Moment) {
		g, err = c.acquire(b, m, claim)
		if e := entry(b, claim.ID); e != nil {
			e.Session = c.name
		}
	})
	return g, err
}

func (c clerk) Renew(_ context.Context, claims []driver.Claim) []error {
	return c.each(claims, c.renew)
}

func (c clerk) Release(_ context.Context, claims []driver.Claim) []error {
	return c.each(claims, c.release)
}

func (c clerk) each(claims []driver.Claim, call perClaim) []error {
	errs := make([]error, len(claims))
	for i, claim := range claims {
		c.with(claim.Key, func(b *book.Book, m book.Moment) { errs[i] = call(b, m, claim) })
	}
	return c.errs(errs)
}

func (c clerk) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close(c.books, c.name)
	return nil
}

func (c clerk) Watch(_ context.Context, claim driver.Claim, wake func(driver.Grant)) (func(), error) {
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

func (c clerk) Holders(_ context.Context, key string) (holders []driver.Holder, err error) {
	c.with(key, func(b *book.Book, m book.Moment) { holders = c.holders(b, m.Now) })
	return holders, nil
}

func (c clerk) Keys(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
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

func (c clerk) Break(_ context.Context, key, id string) (err error) {
	c.with(key, func(b *book.Book, m book.Moment) {
		before := slices.Concat(b.Held, b.Queue)
		err = c.breaks(b, m, id)
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

func (c clerk) Check(context.Context) ([]string, error) { return c.check() }

func (c clerk) Create(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.create(c.books)
}

func (c clerk) Schema() []string { return c.schema }

func (c clerk) Age(context.Context) (time.Duration, error) { return c.age(time.Since(c.start)), nil }
