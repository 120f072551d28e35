package zoo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/rest"
)

// A Config says how to reach an ensemble.
type Config struct {
	Servers []string      // host:port, one or more
	Timeout time.Duration // of silence, after which the session ends; the servers limit the timeout
	Auth    []Auth        // proofs of identity
	TLS     *tls.Config   // nil for none
}

// An Auth is a proof of identity, such as digest and name:password.
type Auth struct{ Scheme, Secret string }

// Events are the callbacks of a session. Callbacks must not block. Requests sent after a
// change are answered only after Changed has returned.
type Events struct {
	Changed func(path string, deleted bool) // a node that was watched; the watch has ended
	Down    func()                          // the connection was lost, and all watches with it
	Up      func()                          // there is a new connection
	Over    func(err error)                 // the session has ended; the last event
}

// A Session is a session with an ensemble, over a single connection at a time.
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
	up       chan struct{}   // closed while there is a connection
	trouble  error           // why there is no connection, as far as known
	server   int             // index in Config.Servers of the last tried server
	alike    map[string]bool // servers that keep a session for the same timeout
	seen     int64
	proven   time.Duration
}

// ErrClosed is the reason why a closed session ends.
var ErrClosed = errors.New("zookeeper: the session was closed")

var errAltered = errors.New("zookeeper: the server goes on with the session on other terms: have all the same minSessionTimeout and maxSessionTimeout?")

var errSilent = errors.New("zookeeper: no server has answered for as long as they keep a silent session for certain")

// Open begins a session with the first server that can be reached. Open tries each server
// once.
func Open(ctx context.Context, config Config, clock *boottime.Clock, events Events) (*Session, error) {
	s := &Session{
		config: config, events: events, clock: clock,
		greeting: greeting{timeout: config.Timeout, password: nobody},
		up:       make(chan struct{}),
		over:     make(chan struct{}),
		server:   rand.IntN(len(config.Servers)),
		alike:    make(map[string]bool),
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

// ID is the number of the session, which is the owner of the session's ephemeral nodes.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.id
}

// Timeout is the timeout that the servers have granted.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.timeout
}

// Ended is closed when the session has ended and every event has been delivered.
func (s *Session) Ended() <-chan struct{} { return s.over }

// Close ends the session, and with it all its nodes. Close notifies the servers if there is
// a connection within a second, and waits for the answer for two seconds: without a Close,
// a session may last for long.
func (s *Session) Close() {
	soon, cancel := context.WithTimeout(s.closed, time.Second)
	defer cancel()
	if s.closed.Err() == nil {
		if calls, err := s.Send(soon, Request{op: opClose}); err == nil {
			ctx, cancel := context.WithTimeout(s.closed, 2*time.Second)
			defer cancel()
			_ = calls[0].Wait(ctx) // without an answer, the session expires
		}
	}
	s.end(ErrClosed)
	<-s.over
}

// Send sends requests together as soon as there is a connection. An error means that
// nothing was sent; if ctx has ended, the error is the error of ctx.
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

// connection returns a connection that has not ended, as far as known.
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
			return nil, s.unconnected(ctx.Err())
		case <-s.closed.Done():
			return nil, context.Cause(s.closed)
		}
		if c != nil {
			s.drop(c)
		}
	}
}

// unconnected returns the error of a caller whose context has ended with err before there
// was a connection.
func (s *Session) unconnected(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, s.trouble)
}

// drop notes that a connection has ended.
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

// reconnect returns a connection with the same session, nil if the session is over.
func (s *Session) reconnect() *conn {
	var last error
	for s.closed.Err() == nil {
		left := s.Trust() - s.clock.Now()
		if left <= 0 {
			s.end(joined([]error{errSilent, last}))
			return nil
		}
		c, err := s.reconnectWithin(left)
		last = err
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

// reconnectWithin tries until left is over, or until a server refuses. After a refusal,
// reconnectWithin does not return at once, since a server may refuse for a while.
func (s *Session) reconnectWithin(left time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(s.closed, left)
	defer cancel()
	c, err := s.connect(ctx, math.MaxInt)
	if err != nil && !final(err) {
		rest.For(ctx, lastPause)
	}
	return c, err
}
