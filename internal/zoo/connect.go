package zoo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/internal/rest"
)

var errUnlike = errors.New("zookeeper: the server has other bounds for the timeout of a session: give all the same minSessionTimeout and maxSessionTimeout")

// final reports whether an attempt to connect has shown that the session is over.
func final(err error) bool { return errors.Is(err, Expired) || errors.Is(err, errAltered) }

// Pauses between attempts to connect to all servers.
const firstPause, lastPause = 20 * time.Millisecond, 500 * time.Millisecond

// connect tries the servers in turn, up to the given number of times or until ctx ends. The
// error has the last failure of every server.
func (s *Session) connect(ctx context.Context, times int) (*conn, error) {
	pause := firstPause
	errs := make([]error, len(s.config.Servers))
	for n := 1; ; n++ {
		s.server = (s.server + 1) % len(s.config.Servers)
		c, err := s.try(ctx, s.config.Servers[s.server])
		if err == nil {
			return c, nil
		}
		if ctx.Err() == nil || errs[s.server] == nil { // otherwise the previous failure says more
			errs[s.server] = fmt.Errorf("%s: %w", s.config.Servers[s.server], err)
			s.mu.Lock()
			s.trouble = joined(errs)
			s.mu.Unlock()
		}
		var code Code
		if errors.As(err, &code) || final(err) || n == times || ctx.Err() != nil {
			return nil, joined(errs)
		}
		if n%len(s.config.Servers) != 0 {
			continue
		}
		rest.For(ctx, pause/2+rand.N(pause/2))
		pause = min(2*pause, lastPause)
	}
}

// joined returns the errors that are not nil as a single error, on a single line.
func joined(errs []error) (all error) {
	for _, err := range errs {
		switch {
		case all == nil:
			all = err
		case err != nil:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// try connects to a server.
func (s *Session) try(ctx context.Context, server string) (*conn, error) {
	s.mu.Lock()
	g := s.greeting
	s.mu.Unlock()
	limit := max(2*time.Second, 6*time.Second/time.Duration(len(s.config.Servers)))
	if g.id != 0 { // There is a session to lose.
		limit = min(2*time.Second, max(g.timeout/8, 200*time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := s.compare(ctx, server, g); err != nil {
		return nil, err
	}
	sent := s.clock.Now()
	c, g, err := s.meet(ctx, server, g)
	if err != nil {
		return nil, err
	}
	s.alike[server] = true
	c.heard = sent
	c.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Opening a session, or resuming a session over a new connection, involves the leader,
	// who counts the silence anew.
	s.greeting, s.proven = g, sent
	s.conn, s.trouble = c, nil
	close(s.up)
	return c, nil
}

// compare checks whether a server that is new to the session would keep the session as long
// as the other servers. A server with other bounds changes the timeout as soon as the
// client resumes the session there. If the answer were lost, the session could end while it
// is trusted. So compare first opens a separate session, and closes it again.
func (s *Session) compare(ctx context.Context, server string, g greeting) error {
	if g.id == 0 || s.alike[server] {
		return nil
	}
	c, other, err := s.meet(ctx, server, greeting{timeout: g.timeout, password: nobody})
	if err != nil {
		return err
	}
	var w writer
	w.int(1)
	w.int(opClose)
	_ = errors.Join(c.write(w), c.Close()) // otherwise the session expires
	if other.timeout != g.timeout {
		return errUnlike
	}
	s.alike[server] = true
	return nil
}

// meet begins a session with a server, or resumes the session of the greeting.
func (s *Session) meet(ctx context.Context, server string, g greeting) (*conn, greeting, error) {
	raw, err := s.dial(ctx, server)
	if err != nil {
		return nil, g, unheard(err)
	}
	s.mu.Lock()
	seen := s.seen
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	c := newConn(raw, s.events.Changed)
	g, err = c.greet(ctx, g, seen, s.config.Auth)
	if !stop() {
		err = ctx.Err() // rather than the error of the closed connection
	}
	if err != nil {
		_ = raw.Close() // the first error is returned
	}
	return c, g, unheard(err)
}

var errHungUp = errors.New("the server hangs up: it has no leader, or expects TLS, or another protocol")

// unheard explains why a server has not answered a greeting. The error does not match that of a
// deadline of the caller: the limits of an attempt are those of this package.
func unheard(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %w", errHungUp, err)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", errMute, os.ErrDeadlineExceeded)
	}
	return err
}

func (s *Session) dial(ctx context.Context, server string) (net.Conn, error) {
	if s.config.TLS == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	}
	return (&tls.Dialer{Config: s.config.TLS}).DialContext(ctx, "tcp", server)
}
