package memcachelock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

func init() { driver.Register("memcached", open) }

// open connects to the servers that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	servers, opts, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // as what Params finds wrong
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s, err := New(servers, opts)
	if err != nil {
		return nil, err
	}
	if err := s.reach(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// parse reads a URL.
func parse(u *url.URL) (servers []string, opts *Options, err error) {
	p := driver.NewParams(u)
	opts = &Options{Prefix: p.Text("prefix", DefaultPrefix), Conns: p.Int("conns", conns, 1, 1000)}
	if err := p.Err(); err != nil {
		return nil, nil, err
	}
	if err := checkPrefix(opts.Prefix); err != nil {
		return nil, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return nil, nil, errors.New("want memcached://host:port, several hosts with commas between them, and nothing after them but parameters")
	}
	if servers, err = addresses(u.Host); err != nil {
		return nil, nil, err
	}
	if u.User != nil {
		opts.User = u.User.Username()
		opts.Password, _ = u.User.Password()
		if strings.ContainsAny(opts.User, " :\r\n") || strings.ContainsAny(opts.Password, "\r\n") {
			return nil, nil, errors.New("the user has a space or a colon, or the password the end of a line: Memcached cannot tell")
		}
	}
	return servers, opts, nil
}

// addresses are the servers of a URL: h1:11211,h2:11211.
func addresses(hosts string) ([]string, error) {
	if hosts == "" {
		return []string{"127.0.0.1:11211"}, nil
	}
	var all []string
	for host := range strings.SplitSeq(hosts, ",") {
		addr := withPort(host)
		switch {
		case host == "" || strings.HasPrefix(addr, ":"):
			return nil, fmt.Errorf("hosts %q: one of them is empty", hosts)
		case slices.Contains(all, addr):
			return nil, fmt.Errorf("hosts %q: %s is there twice", hosts, addr)
		}
		all = append(all, addr)
	}
	return all, nil
}
