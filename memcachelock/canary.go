package memcachelock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/internal/canary"
)

// canaryTime is how long the item of a canary stays, in seconds, if nobody deletes the item.
const canaryTime = 60

// canaryWait is how long the connections of a canary may take, and at most half of the caller's
// time: a server with as many connections as it may have lets a further connection wait. A
// connection to a server that has just started takes two seconds, see findEpoch.
const canaryWait = 6 * time.Second

// After a canary that has shown nothing, the next call tries again: it may have more time. Later
// calls try after pauses, from canaryPause to canaryRest, since a canary may cost half of a call's
// time.
const (
	canaryPause = time.Second
	canaryRest  = time.Minute
)

// prove returns an error that matches [driver.ErrInvalid] if the server, or the proxy before it,
// ignores the conditions of writes, or keeps the items of two connections apart. A success is
// remembered, so a Store proves a server once. If another server is just taking over the address,
// see package canary, the error does not match. Without evidence, as when the server has no memory
// left, prove returns nil, and tries again later. After evidence, only a proof lets calls go on.
// After an error, own cannot be used again: a new connection may lead to another server.
func (s *server) prove(ctx context.Context, own *conn) error {
	if s.proved.Load() || s.evidence.Load() == nil && !s.due() {
		return nil
	}
	err := s.try(ctx, own)
	if err == nil && own.failed { // ctx has ended
		err = os.ErrDeadlineExceeded
	}
	own.failed = err != nil
	if err != nil {
		s.mu.Lock()
		s.again = time.Time{} // The call tries again, with another connection.
		s.mu.Unlock()
	}
	return err
}

// due reports whether a call has to send a canary: each call does until a canary has shown nothing,
// and one call after each pause from then on.
func (s *server) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pause == 0 {
		return true
	}
	now := time.Now()
	if now.Before(s.again) {
		return false
	}
	s.again, s.pause = now.Add(s.pause), min(2*s.pause, canaryRest)
	return true
}

// unproved notes that a canary has shown nothing.
func (s *server) unproved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = max(s.pause, canaryPause)
}

// try sends a canary, as prove describes.
func (s *server) try(ctx context.Context, own *conn) error {
	limited, cancel := canary.Limit(ctx, canaryWait)
	defer cancel()
	dial := func() (*conn, func(), error) {
		c, err := s.connect(limited)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errUnsure, err) // a later call proves the server
		}
		return c, func() { c.Close() }, nil
	}
	within := func(c *conn) context.Context {
		if c == own { // which the call still needs
			return ctx
		}
		return limited
	}
	err := canary.Prove(own, dial, func(first, second *conn) error { return s.compare(within, first, second) })
	lie, doubt := (*canary.Lie)(nil), (*canary.Doubt)(nil)
	switch {
	case err == nil:
		s.proved.Store(true)
		return nil
	case errors.As(err, &lie):
		s.evidence.Store(&err)
		return err
	case errors.As(err, &doubt):
		err = errors.New(doubt.Error()) // the cause may be the end of limited
		s.evidence.Store(&err)
		return err
	case errors.Is(err, errUnsure), !own.failed && (limited.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)):
		if evidence := s.evidence.Load(); evidence != nil {
			return *evidence
		}
		s.unproved()
		return nil
	}
	return err
}

// errUnsure is the error of a canary that shows nothing.
var errUnsure = errors.New("the server has not stored the item")

// compare lets two connections store the same item. within is as for ignored.
func (s *server) compare(within func(*conn) context.Context, first, second *conn) error {
	began := time.Now()
	wrong, err := ignored(within, s.opts.canary(rand.Text()), first, second)
	switch {
	case err != nil || wrong == "":
		return err
	case first.run != second.run:
		wrong = "the address leads to several servers"
	case time.Since(began) > canaryTime*time.Second/2:
		return errUnsure
	}
	return &canary.Lie{What: fmt.Sprintf("the Memcached server %s does not exclude: %s. Name the servers themselves, without a proxy: the store shares the keys among them", s.addr, wrong)}
}

// ignored says which condition the server has ignored, "" for none. within returns the context of
// requests over a connection.
func ignored(within func(*conn) context.Context, item string, first, second *conn) (wrong string, err error) {
	var replies []reply
	send := func(c *conn, n int, format string, args ...any) {
		if err == nil {
			err = c.serve(within(c), func(c *conn) error {
				replies, err = c.exchange(fmt.Appendf(nil, format, args...), n)
				return err
			})
		}
	}
	send(first, 2, "add %[1]s 0 %[2]d 1\r\na\r\nmg %[1]s v c\r\n", item, canaryTime)
	if err != nil {
		return "", err
	}
	cas := replies[1].cas
	if replies[0].code != "STORED" || replies[1].value != "a" || cas == 0 {
		return "", errUnsure
	}
	send(second, 3, "add %[1]s 0 %[2]d 1\r\nb\r\nms %[1]s 1 T%[2]d C%[3]d\r\nc\r\nmd %[1]s C%[3]d\r\n", item, canaryTime, cas+1)
	if err != nil {
		return "", err
	}
	conditions := replies
	send(first, 2, "md %[1]s C%[2]d\r\nmd %[1]s\r\n", item, cas)
	switch {
	case err != nil:
		return "", err
	case conditions[0].code == "STORED":
		return "of two connections that add the same item, both have stored it", nil
	case conditions[1].code == "HD" || conditions[2].code == "HD":
		return "a write with the wrong number for compare-and-swap was carried out", nil
	}
	return "", nil
}
