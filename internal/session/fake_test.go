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

// A fakeServer opens sessions, records their requests, and answers as a test wants. The
// tests of the real servers check that the servers answer alike.
type fakeServer struct {
	opens         chan struct{} // if not nil, each session that opens takes one
	ignoresCancel bool          // Open does not return when its context ends

	mu    sync.Mutex
	conns []*fakeConn
	taken map[string]bool // by other sessions

	resting map[string]bool // refused without a request to the server

	token uint64
}

func (s *fakeServer) Name(key string) string { return "name of " + key }

func (s *fakeServer) Open(ctx context.Context, _ string, limit time.Duration, events Events) (Conn, error) {
	if s.opens != nil {
		over := ctx.Done()
		if s.ignoresCancel {
			over = nil
		}
		select {
		case <-s.opens:
		case <-over:
			return nil, ctx.Err()
		}
	}
	c := &fakeConn{
		fakeServer: s, events: events, limit: limit,
		asked: make(chan func(error), 10_000), closed: make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	go c.serve(limit)
	return c, nil
}

// last returns the session that was opened last.
func (s *fakeServer) last() *fakeConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[len(s.conns)-1]
}

// A fakeConn is a session, which ends after a silence longer than the limit.
type fakeConn struct {
	*fakeServer
	events Events
	asked  chan func(ended error)
	closed chan struct{}

	mu    sync.Mutex
	calls []string
	limit time.Duration // as last sent
	gate  chan struct{} // if not nil, no request arrives before the gate is closed
	late  bool          // requests that were sent before Close are still answered
	why   error         // why the session was closed
}

var _ Pusher = (*fakeConn)(nil)

var errTooSilent = errors.New("the session was silent for longer than its limit")

// serve answers until the session ends.
func (c *fakeConn) serve(limit time.Duration) {
	var why error
	for silent := time.NewTimer(limit); why == nil; {
		select {
		case answer := <-c.asked:
			if why = c.arrive(); why == nil {
				answer(nil)
				silent.Reset(c.lastLimit())
			} else {
				answer(why)
			}
		case <-silent.C:
			why = errTooSilent
		case <-c.closed:
			for c.late && len(c.asked) > 0 {
				(<-c.asked)(nil)
			}
			why = c.reason()
		}
	}
	for len(c.asked) > 0 {
		(<-c.asked)(why)
	}
	c.events.Lost(why)
}

// arrive returns when requests arrive, or why they never will.
func (c *fakeConn) arrive() error {
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
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.late {
			return nil
		}
		return c.why
	}
}

// hold delays all requests until release is called.
func (c *fakeConn) hold() (release func()) {
	gate := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = gate
	return func() { close(gate) }
}

func (c *fakeConn) lastLimit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit
}

func (c *fakeConn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// ask records a request and has it answered.
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
		c.fakeServer.mu.Lock()
		taken := c.taken[name]
		c.token += 10
		token := c.token
		c.fakeServer.mu.Unlock()
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

// fail ends the session after an error.
func (c *fakeConn) fail(why error) {
	c.events.Ending(why)
	c.Close(why)
}

// requests returns the recorded requests that begin with one of the words, and deletes the
// record.
func (c *fakeConn) requests(words ...string) (calls []string) {
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

// A fixture is a store over a fakeServer, in a synctest bubble.
type fixture struct {
	*testing.T
	Watcher
	server *fakeServer
}

func run(t *testing.T, test func(b *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{taken: make(map[string]bool)}
		b := &fixture{t, Watcher{New(s, Terms{MinTTL: time.Second, MaxTTL: time.Hour, Span: 10})}, s}
		defer b.Store.Close()
		test(b)
	})
}

func claim(key, id string, ttl time.Duration) driver.Claim {
	return driver.Claim{Key: key, ID: id, TTL: ttl, Weight: driver.MaxWeight, Limit: driver.MaxWeight}
}

func (b *fixture) acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return b.Acquire(ctx, driver.Ask{Claim: c})
}

// take acquires a claim, which must be granted, and may have passed others.
func (b *fixture) take(c driver.Claim) driver.Grant {
	b.Helper()
	g, err := b.acquire(b.Context(), c)
	if err != nil || !g.OK || !g.Passed {
		b.Fatalf("%s by %s: %+v, %v; want it granted with Passed", c.Key, c.ID, g, err)
	}
	return g
}

func (b *fixture) refused(c driver.Claim) {
	b.Helper()
	if g, err := b.acquire(b.Context(), c); err != nil || g.OK {
		b.Fatalf("%s by %s: %+v, %v; want it refused", c.Key, c.ID, g, err)
	}
}

// release returns the error of a release of one claim.
func (b *fixture) release(c driver.Claim) error {
	return errors.Join(b.Release(context.Background(), []driver.Release{{Claim: c}})...)
}

func (b *fixture) renew(c driver.Claim) error {
	return errors.Join(b.Renew(context.Background(), []driver.Renewal{{Claim: c}})...)
}

func (b *fixture) expect(got []string, want ...string) {
	b.Helper()
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		b.Errorf("the server was asked: %q, want %q", got, want)
	}
}
