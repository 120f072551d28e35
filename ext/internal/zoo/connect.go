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
)

var errUnlike = errors.New("zookeeper: the server has other bounds for the timeout of a session: give all the same minSessionTimeout and maxSessionTimeout")

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

// connect tries one server after the other, so many times or until ctx ends. The
// error tells of the last try of each.
func (s *Session) connect(ctx context.Context, times int) (*conn, error) {
	pause := firstPause
	errs := make([]error, len(s.config.Servers))
	for n := 1; ; n++ {
		s.server = (s.server + 1) % len(s.config.Servers)
		c, err := s.try(ctx, s.config.Servers[s.server])
		if err == nil {
			return c, nil
		}
		if ctx.Err() == nil || errs[s.server] == nil { // else the last try says less
			errs[s.server] = fmt.Errorf("%s: %w", s.config.Servers[s.server], err)
		}
		var code Code
		if errors.As(err, &code) || final(err) || n == times || ctx.Err() != nil {
			return nil, joined(errs)
		}
		if n%len(s.config.Servers) != 0 {
			continue
		}
		rest(ctx, pause/2+rand.N(pause/2))
		pause = min(2*pause, lastPause)
	}
}

// joined is one error, on one line, for those that are not nil.
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

// try connects to one server.
func (s *Session) try(ctx context.Context, server string) (*conn, error) {
	s.mu.Lock()
	g := s.greeting
	s.mu.Unlock()
	limit := max(2*time.Second, 6*time.Second/time.Duration(len(s.config.Servers)))
	if g.id != 0 { // There is a session to be lost.
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
	// To open a session, or to go on with it over another connection, takes the
	// leader, who counts the silence anew.
	s.greeting, s.proven = g, sent
	s.conn = c
	close(s.up)
	return c, nil
}

// compare finds out whether a server that has not served the session yet would keep
// it as long as the others. One with other bounds changes the timeout as soon as it
// is asked to go on with the session: if its answer were lost, the session could end
// while it is trusted. So it is asked for another session first, which is given back.
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
	_ = errors.Join(c.write(w), c.Close()) // or it ends by itself
	if other.timeout != g.timeout {
		return errUnlike
	}
	s.alike[server] = true
	return nil
}

// meet begins a session with a server, or goes on with the one that is greeted from.
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
		err = ctx.Err() // and not that the connection was closed for it
	}
	if err != nil {
		_ = raw.Close() // what went wrong is known
	}
	return c, g, unheard(err)
}

var errHungUp = errors.New("the server hangs up: it has no leader, or expects TLS, or another protocol")

// unheard says what it means that a server has not answered a greeting.
func unheard(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %w", errHungUp, err)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", errMute, context.DeadlineExceeded)
	}
	return err
}

func (s *Session) dial(ctx context.Context, server string) (net.Conn, error) {
	if s.config.TLS == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	}
	return (&tls.Dialer{Config: s.config.TLS}).DialContext(ctx, "tcp", server)
}
