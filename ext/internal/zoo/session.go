package zoo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A Config says how to reach an ensemble.
type Config struct {
	Servers []string      // host:port, one or more
	Timeout time.Duration // of silence, after which the session ends; the servers have their bounds
	Auth    []Auth        // who we are
	TLS     *tls.Config   // nil for none
}

// An Auth is a proof of who we are, such as digest and name:password.
type Auth struct{ Scheme, Secret string }

// Events are what a session tells by itself. They do not block. Nothing that was
// sent after a change is answered before Changed has returned.
type Events struct {
	Changed func(path string, deleted bool) // a node that was watched; the watch has ended
	Down    func()                          // the connection was lost, and all watches with it
	Up      func()                          // there is another
	Over    func(err error)                 // the session has ended; the last event
}

// A Session is a session with an ensemble, over one connection at a time.
type Session struct {
	config Config
	events Events
	clock  *boottime.Clock
	closed context.Context
	end    context.CancelCauseFunc
	over   chan struct{} // closed after the last event

	mu       sync.Mutex
	greeting greeting
	conn     *conn
	up       chan struct{} // closed while there is a connection
	server   int           // of Config.Servers, that was tried last
	seen     int64
	proven   time.Duration
}

// ErrClosed is why a session ends that is closed.
var ErrClosed = errors.New("zookeeper: the session was closed")

var errAltered = errors.New("zookeeper: the server goes on with the session on other terms: have all the same minSessionTimeout and maxSessionTimeout?")

var errSilent = errors.New("zookeeper: no server has answered for as long as they keep a silent session for certain")

// Open begins a session with the first server that can be reached. It tries each
// of them once.
func Open(ctx context.Context, config Config, clock *boottime.Clock, events Events) (*Session, error) {
	s := &Session{
		config: config, events: events, clock: clock,
		greeting: greeting{timeout: config.Timeout, password: string(make([]byte, 16))},
		up:       make(chan struct{}),
		over:     make(chan struct{}),
		server:   rand.IntN(len(config.Servers)),
	}
	s.closed, s.end = context.WithCancelCause(context.Background())
	c, err := s.connect(ctx, len(config.Servers))
	if err != nil {
		s.end(err)
		return nil, err
	}
	go s.run(c)
	return s, nil
}

// ID is the number of the session, which the nodes have as owner that end with it.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.id
}

// Timeout is what the servers have granted.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.timeout
}

// Ended is closed when the session has ended and every event has been told.
func (s *Session) Ended() <-chan struct{} { return s.over }

// Close ends the session, and with it all its nodes. It tries for a second to tell
// the servers.
func (s *Session) Close() {
	ctx, cancel := context.WithTimeout(s.closed, time.Second)
	defer cancel()
	if s.closed.Err() == nil {
		if calls, err := s.Send(ctx, Request{op: opClose}); err == nil {
			_ = calls[0].Wait(ctx) // if it is not answered, the session ends by itself
		}
	}
	s.end(ErrClosed)
	<-s.over
}

// Send sends requests together as soon as there is a connection. An error means
// that nothing was sent; it is that of ctx if that has ended.
func (s *Session) Send(ctx context.Context, requests ...Request) ([]*Call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	calls := make([]*Call, len(requests))
	for i, r := range requests {
		calls[i] = &Call{op: r.op, path: r.path, done: make(chan struct{})}
	}
	for {
		c, err := s.connection(ctx)
		if err != nil {
			return nil, err
		}
		if c.queue(calls, requests) {
			return calls, nil
		}
	}
}

// connection returns a connection that has not ended, as far as is known.
func (s *Session) connection(ctx context.Context) (*conn, error) {
	for {
		s.mu.Lock()
		c, up := s.conn, s.up
		s.mu.Unlock()
		if c != nil && !c.over() {
			return c, nil
		}
		if c != nil {
			up = c.ended
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.closed.Done():
			return nil, context.Cause(s.closed)
		}
		if c != nil {
			s.drop(c)
		}
	}
}

// drop takes note that a connection has ended.
func (s *Session) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c {
		s.conn, s.up = nil, make(chan struct{})
		s.seen = max(s.seen, c.seen)
	}
}

// run keeps the session until it is over.
func (s *Session) run(c *conn) {
	for c != nil {
		s.keep(c)
		<-c.ended
		s.drop(c)
		s.events.Down()
		c = s.reconnect()
	}
	s.events.Over(context.Cause(s.closed))
	close(s.over)
}

// reconnect returns a connection with the same session, nil if that is over.
func (s *Session) reconnect() *conn {
	for s.closed.Err() == nil {
		left := s.Trust() - s.clock.Now()
		if left <= 0 {
			s.end(errSilent)
			return nil
		}
		c, err := s.reconnectWithin(left)
		switch {
		case err == nil:
			s.events.Up()
			return c
		case errors.Is(err, Expired):
			s.end(Expired)
		case errors.Is(err, errAltered):
			s.end(errAltered)
		}
	}
	return nil
}

// reconnectWithin tries for so long, or until a server refuses. It does not return
// at once then, since a server may refuse for a while.
func (s *Session) reconnectWithin(left time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(s.closed, left)
	defer cancel()
	c, err := s.connect(ctx, math.MaxInt)
	if err != nil && !final(err) {
		rest(ctx, lastPause)
	}
	return c, err
}

// final reports whether an attempt to connect has shown that the session is over.
func final(err error) bool { return errors.Is(err, Expired) || errors.Is(err, errAltered) }

// Pauses between attempts to connect to all servers.
const firstPause, lastPause = 20 * time.Millisecond, 500 * time.Millisecond

// rest waits, at most until ctx ends.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect tries one server after the other, so many times or until ctx ends.
func (s *Session) connect(ctx context.Context, times int) (*conn, error) {
	pause := firstPause
	for n := 1; ; n++ {
		s.server = (s.server + 1) % len(s.config.Servers)
		c, err := s.try(ctx, s.config.Servers[s.server])
		if err == nil {
			return c, nil
		}
		var code Code
		if errors.As(err, &code) || final(err) || n == times || ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", s.config.Servers[s.server], err)
		}
		if n%len(s.config.Servers) != 0 {
			continue
		}
		rest(ctx, pause/2+rand.N(pause/2))
		pause = min(2*pause, lastPause)
	}
}

// try connects to one server.
func (s *Session) try(ctx context.Context, server string) (*conn, error) {
	s.mu.Lock()
	g, seen := s.greeting, s.seen
	s.mu.Unlock()
	limit := 2 * time.Second
	if g.id != 0 { // There is a session to be lost.
		limit = min(limit, max(g.timeout/8, 200*time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := s.dial(ctx, server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	c := newConn(raw, s.events.Changed)
	sent := s.clock.Now()
	g, err = c.greet(ctx, g, seen, s.config.Auth)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close() // what went wrong is known
		return nil, err
	}
	c.heard = sent
	c.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	// To open a session, or to go on with it over another connection, takes the
	// leader, who counts the silence anew.
	s.greeting, s.proven = g, sent
	s.conn = c
	close(s.up)
	return c, nil
}

func (s *Session) dial(ctx context.Context, server string) (net.Conn, error) {
	if s.config.TLS == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	}
	return (&tls.Dialer{Config: s.config.TLS}).DialContext(ctx, "tcp", server)
}
