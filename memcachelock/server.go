package memcachelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

var errClosed = errors.New("memcached store is closed")

// errYoung is the error of a call with too little time for a server that has just started. errYoung
// matches [os.ErrDeadlineExceeded], like other limits of a store.
var errYoung error = young{}

type young struct{}

func (young) Error() string {
	return "the server has just started, and grants no locks in its first two seconds"
}

func (young) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// A server is one of the servers that share the claims, with our connections to it.
type server struct {
	addr  string
	opts  *Options
	slots chan struct{} // has an element for each connection in use

	proved   atomic.Bool           // see prove
	evidence atomic.Pointer[error] // against the server, until a proof

	mu     sync.Mutex
	closed bool
	idle   []*conn
	again  time.Time     // no canary before, unless there is evidence
	pause  time.Duration // after the next canary; 0 until a canary has shown nothing
}

func newServer(addr string, opts *Options) *server {
	return &server{addr: addr, opts: opts, slots: make(chan struct{}, opts.Conns)}
}

// with calls prove and f with a connection that is bound to ctx. If an old connection turns out to
// be dead, as all are after a restart of the server, with calls both a second time with a new
// connection. If an old connection does not answer in time, there is no time for a second call. The
// idle connections may be as dead, so with closes them.
func (s *server) with(ctx context.Context, f func(*conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer func() { <-s.slots }()
	for {
		c, err := s.get(ctx)
		if err != nil {
			return s.explain(ctx, err)
		}
		old := c.used
		if err = s.prove(ctx, c); err == nil {
			err = c.serve(ctx, f)
		}
		s.put(c)
		cancelled := errors.Is(ctx.Err(), context.Canceled)
		if err == nil || !old || !c.failed || cancelled {
			return s.explain(ctx, err)
		}
		s.closeIdle()
		if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return s.explain(ctx, err)
		}
	}
}

// serve runs a call, within its context.
func (c *conn) serve(ctx context.Context, f func(*conn) error) error {
	free, err := c.bind(ctx)
	if err != nil {
		c.failed = true
		return err
	}
	defer free()
	c.used = true
	return f(c)
}

// enter waits for a free connection slot.
func (s *server) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explain returns the error of the context if the context has ended the call.
func (s *server) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %w", s.addr, cause)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errYoung) {
		return fmt.Errorf("%s: %w", s.addr, context.DeadlineExceeded)
	}
	return err
}

// get returns the connection that was used last, or a new one.
func (s *server) get(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return c, nil
	}
	s.mu.Unlock()
	return s.connect(ctx)
}

// put returns a connection to the pool, or closes a connection that cannot be used again.
func (s *server) put(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.failed || s.closed {
		c.Close()
		return
	}
	s.idle = append(s.idle, c)
}

// closeIdle closes the connections that are not in use.
func (s *server) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		c.Close()
	}
	s.idle = nil
}

// close closes the idle connections. Calls under way complete; later calls fail.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closeIdle()
}

func (s *server) connect(ctx context.Context) (*conn, error) {
	dial := s.opts.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	raw, err := dial(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, lines: bufio.NewReader(raw)}
	err = c.serve(ctx, func(c *conn) error { return s.handshake(ctx, c) })
	if err == nil && c.failed { // ctx has ended
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	c.used = false
	return c, nil
}

// handshake authenticates, and finds out the current run of the server.
func (s *server) handshake(ctx context.Context, c *conn) error {
	if s.opts.User != "" {
		// A server without passwords takes the secret for an expired item to store, and may
		// have no room for the item.
		secret := s.opts.User + " " + s.opts.Password
		answer, err := c.exchange(fmt.Appendf(nil, "set %s 0 -1 %d\r\n%s\r\n", s.opts.authItem(), len(secret), secret), 1)
		switch {
		case err != nil:
			return s.rejected(err)
		case answer[0].code != "STORED" && answer[0].err != full:
			return fmt.Errorf("%s: it does not take the password: %s", s.addr, answer[0].code)
		}
	}
	answers, err := c.exchange(fmt.Appendf(startClock(nil, s.opts.clock()), "mg %s v c t\r\n", s.opts.clock()), 2)
	if err != nil {
		return s.rejected(err)
	}
	clock := answers[1]
	switch {
	case clock.code != "VA" && answers[0].err == full:
		return s.findEpoch(ctx, c) // The server has no room for the lost clock.
	case clock.code != "VA" && answers[0].err != nil:
		return answers[0].err
	case clock.code != "VA" || clock.left <= 0:
		return c.wrongClock(s.opts.clock())
	case clock.cas == 0:
		return fmt.Errorf("%w: Memcached at %s was started with -C, so it cannot compare and swap; start it without", driver.ErrInvalid, s.addr)
	}
	c.run = clock.value
	c.open(horizon - clock.left)
	return s.findEpoch(ctx, c)
}

// rejected explains the error of a server that does not know our commands.
func (s *server) rejected(err error) error {
	var answer serverError
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: is it a Memcached of version 1.6.10 or later, and without TLS?", err)
	case !errors.As(err, &answer):
		return err
	case strings.Contains(string(answer), "authentic"):
		return fmt.Errorf("%w: Memcached at %s wants a user and a password, and not these: %w", driver.ErrInvalid, s.addr, err)
	case answer == "ERROR" || strings.HasPrefix(string(answer), "CLIENT_ERROR"):
		return fmt.Errorf("%w: %s is no Memcached of version 1.6.10 or later: %w", driver.ErrInvalid, s.addr, err)
	}
	return err
}

// oldest is the first version whose meta commands answer HD. Those before answer OK.
const oldest = "1.6.10"

// tooOld reports whether a version is before oldest. A service may have versions of another
// form, which are not too old.
func tooOld(version string) bool {
	minor, found := strings.CutPrefix(version, "1.6.")
	n, err := strconv.Atoi(minor)
	return found && err == nil && n < 10
}

// findEpoch finds out when the run began. If the run has just begun, findEpoch waits for a
// second. A later run, should this run end at once, then begins at a later second by the
// same count. Servers report an uptime of 2 seconds at the beginning, and the first second
// after may be short. If the wait takes half of the caller's time, findEpoch returns errYoung.
func (s *server) findEpoch(ctx context.Context, c *conn) error {
	if end, ok := ctx.Deadline(); ok {
		half, cancel := context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
		ctx = half
	}
	for {
		stats, err := c.stats("stats")
		if err != nil {
			return err
		}
		if tooOld(stats["version"]) {
			return fmt.Errorf("%w: Memcached at %s has the version %s, and the store needs %s or later", driver.ErrInvalid, s.addr, stats["version"], oldest)
		}
		now, err := strconv.ParseUint(stats["time"], 10, 32)
		uptime, bad := strconv.ParseUint(stats["uptime"], 10, 32)
		if err != nil || bad != nil || uptime > now {
			return fmt.Errorf("%s: stats say time %.30q, uptime %.30q", s.addr, stats["time"], stats["uptime"])
		}
		c.epoch = now - uptime
		if c.run == "" {
			c.run = fmt.Sprintf("%s of %d", stats["pid"], c.epoch)
			c.open(int64(now))
		}
		if !c.plausible(int64(now)) {
			return c.wrongClock(s.opts.clock())
		}
		if uptime > 3 {
			return nil
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w", s.addr, errYoung)
		}
	}
}
