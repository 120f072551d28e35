package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A seam stands where a server is otherwise: it opens sessions, notes what they
// are asked for, and answers as a test wants it. Whether servers do what it does
// is for their own tests.
type seam struct {
	opens chan struct{} // if not nil, each session that opens takes one
	deaf  bool          // Open does not hear that its context has ended

	mu    sync.Mutex
	conns []*fakeConn
	taken map[string]bool // by others

	resting map[string]bool // refused without a request to the server

	token uint64
}

func (s *seam) Name(key string) string { return "name of " + key }

func (s *seam) Open(ctx context.Context, _ string, limit time.Duration, events Events) (Conn, error) {
	if s.opens != nil {
		over := ctx.Done()
		if s.deaf {
			over = nil
		}
		select {
		case <-s.opens:
		case <-over:
			return nil, ctx.Err()
		}
	}
	c := &fakeConn{
		seam: s, events: events, limit: limit,
		asked: make(chan func(error), 10_000), closed: make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	go c.serve(limit)
	return c, nil
}

// last is the session that was opened last.
func (s *seam) last() *fakeConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[len(s.conns)-1]
}

// A fakeConn is a session. Like a server, it ends when it has been silent for
// longer than the limit.
type fakeConn struct {
	*seam
	events Events
	asked  chan func(ended error)
	closed chan struct{}

	mu    sync.Mutex
	calls []string
	limit time.Duration // as last told
	gate  chan struct{} // if not nil, nothing arrives before it is closed
	why   error         // it was closed
}

var _ Pusher = (*fakeConn)(nil)

var errTooSilent = errors.New("the session was silent for longer than its limit")

// serve answers until the session ends.
func (c *fakeConn) serve(limit time.Duration) {
	var why error
	for silent := time.NewTimer(limit); why == nil; {
		select {
		case answer := <-c.asked:
			if why = c.pass(); why == nil {
				answer(nil)
				silent.Reset(c.told())
			} else {
				answer(why)
			}
		case <-silent.C:
			why = errTooSilent
		case <-c.closed:
			why = c.reason()
		}
	}
	for len(c.asked) > 0 {
		(<-c.asked)(why)
	}
	c.events.Lost(why)
}

// pass returns when what was sent arrives, or why it never will.
func (c *fakeConn) pass() error {
	c.mu.Lock()
	gate := c.gate
	c.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-c.closed:
		return c.reason()
	}
}

// hold has nothing arrive until the result is called.
func (c *fakeConn) hold() (release func()) {
	gate := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = gate
	return func() { close(gate) }
}

func (c *fakeConn) told() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit
}

func (c *fakeConn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// ask notes a request and lets it be answered.
func (c *fakeConn) ask(call string, answer func(ended error)) {
	c.mu.Lock()
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	c.asked <- answer
}

func (c *fakeConn) Ping(limit time.Duration, done func(error)) {
	c.ask(fmt.Sprint("ping ", limit), func(ended error) {
		if ended == nil {
			c.mu.Lock()
			c.limit = limit
			c.mu.Unlock()
		}
		done(ended)
	})
}

func (c *fakeConn) Try(name string, _ bool, done func(uint64, error)) {
	if c.resting[name] {
		go done(0, backoff.ErrResting)
		return
	}
	c.ask("try "+name, func(ended error) {
		c.seam.mu.Lock()
		taken := c.taken[name]
		c.token += 10
		token := c.token
		c.seam.mu.Unlock()
		switch {
		case ended != nil:
			done(0, ended)
		case taken:
			done(0, nil)
		default:
			done(token, nil)
		}
	})
}

func (c *fakeConn) Free(name string, done func(error))  { c.ask("free "+name, done) }
func (c *fakeConn) Watch(name string, done func(error)) { c.ask("watch "+name, done) }
func (c *fakeConn) Unwatch(name string)                 { c.ask("unwatch "+name, func(error) {}) }
func (c *fakeConn) Help(<-chan struct{})                {}

func (c *fakeConn) Close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		c.why = why
		close(c.closed)
	}
}

// said returns the calls that begin with one of the words, and forgets all.
func (c *fakeConn) said(words ...string) (calls []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		word, _, _ := strings.Cut(call, " ")
		for _, w := range words {
			if word == w {
				calls = append(calls, call)
			}
		}
	}
	c.calls = nil
	return calls
}

// A bench is a store over a seam, in a bubble of time.
type bench struct {
	*testing.T
	Watcher
	seam *seam
}

func run(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &seam{taken: make(map[string]bool)}
		b := &bench{t, Watcher{New(s, Terms{MinTTL: time.Second, MaxTTL: time.Hour, Span: 10})}, s}
		defer b.Store.Close()
		test(b)
	})
}

func claim(key, id string, ttl time.Duration) driver.Claim {
	return driver.Claim{Key: key, ID: id, TTL: ttl, Weight: driver.MaxWeight, Limit: driver.MaxWeight}
}

func (b *bench) acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return b.Acquire(ctx, driver.Ask{Claim: c})
}

// take acquires a claim that is granted.
func (b *bench) take(c driver.Claim) driver.Grant {
	b.Helper()
	g, err := b.acquire(b.Context(), c)
	if err != nil || !g.OK {
		b.Fatalf("%s by %s: %+v, %v; want it granted", c.Key, c.ID, g, err)
	}
	return g
}

func (b *bench) refused(c driver.Claim) {
	b.Helper()
	if g, err := b.acquire(b.Context(), c); err != nil || g.OK {
		b.Fatalf("%s by %s: %+v, %v; want it refused", c.Key, c.ID, g, err)
	}
}

// release is the error that a release of one claim has.
func (b *bench) release(c driver.Claim) error {
	return errors.Join(b.Release(context.Background(), []driver.Release{{Claim: c}})...)
}

func (b *bench) renew(c driver.Claim) error {
	return errors.Join(b.Renew(context.Background(), []driver.Renewal{{Claim: c}})...)
}

func (b *bench) expect(got []string, want ...string) {
	b.Helper()
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		b.Errorf("the server was asked: %q, want %q", got, want)
	}
}
