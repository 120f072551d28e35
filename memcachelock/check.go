package memcachelock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

// Check warns of servers that may evict locks, servers that do not answer, and servers that
// receive a password unencrypted, as driver.Checker describes.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	told := make([]string, len(s.servers))
	errs := make([]error, len(s.servers))
	s.everywhere(func(i int, server *server) {
		told[i], errs[i] = server.check(ctx)
	})
	if s.opts.Password != "" && s.opts.Dial == nil {
		var hosts []string
		for _, server := range s.servers {
			hosts = append(hosts, server.addr)
		}
		warnings = hosturl.Plain(hosts, "keep it in a private network, or give New a function that dials with TLS")
	}
	for _, warning := range told {
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings, errors.Join(errs...)
}

// everywhere calls f for all servers at the same time.
func (s *Store) everywhere(f func(i int, server *server)) {
	var all sync.WaitGroup
	for i, server := range s.servers {
		all.Go(func() { f(i, server) })
	}
	all.Wait()
}

func (s *server) check(ctx context.Context) (warning string, err error) {
	var settings map[string]string
	err = s.with(ctx, func(c *conn) (err error) {
		settings, err = c.stats("stats settings")
		return err
	})
	switch {
	case errors.Is(err, driver.ErrInvalid):
		return "", err
	case err != nil:
		return fmt.Sprintf("the Memcached server %s does not answer (%v): its keys cannot be locked until it does", s.addr, err), nil
	case settings["evictions"] == "on":
		return fmt.Sprintf("the Memcached server %s may evict locks that are held when its memory is full: start one for locks alone, with -M", s.addr), nil
	}
	return "", nil
}

// reachLimit is how long a server may take to answer for the first time. A server that has
// just started takes a second or two.
const reachLimit = 5 * time.Second

// reach fails if no server can be reached, or if any of them can keep no lock.
func (s *Store) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	errs := make([]error, len(s.servers))
	s.everywhere(func(i int, server *server) {
		errs[i] = server.with(ctx, func(*conn) error { return nil })
	})
	down := 0
	for _, err := range errs {
		var answer serverError
		switch {
		case errors.Is(err, driver.ErrInvalid) || errors.As(err, &answer):
			return err
		case err != nil:
			down++
		}
	}
	if down == len(errs) {
		return errors.Join(errs...)
	}
	return nil
}
