package zklock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

func init() { driver.Register("zk", open) }

// open opens a session with the ensemble in a URL.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	servers, opts, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // like the errors of Params
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s, err := New(servers, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	if _, err := s.session(ctx, usual); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// parse reads a URL.
func parse(u *url.URL) (servers []string, opts *Options, err error) {
	p := driver.NewParams(u)
	opts = &Options{Prefix: p.Text("prefix", DefaultPrefix)}
	acl := p.Text("acl", "")
	encrypted := p.Bool("tls", false)
	ca, cert, key, name := p.Text("ca", ""), p.Text("cert", ""), p.Text("key", ""), p.Text("server_name", "")
	if err := p.Err(); err != nil {
		return nil, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Contains(u.EscapedPath(), "@") {
		return nil, nil, errors.New("want zk://host:port,host:port and, if you like, user:password@ before them and /chroot after them")
	}
	opts.Chroot = strings.TrimSuffix(u.Path, "/")
	if servers, err = hosturl.Addresses(u.Host, "2181"); err != nil {
		return nil, nil, err
	}
	if u.User != nil {
		opts.User = u.User.Username()
		opts.Password, _ = u.User.Password()
		if opts.User == "" || opts.Password == "" || strings.Contains(opts.User, ":") {
			return nil, nil, errors.New("a user needs a name, without a colon, and a password")
		}
	}
	if opts.ACL, err = parseACL(acl); err != nil {
		return nil, nil, err
	}
	if encrypted {
		opts.TLS, err = hosturl.TLS(ca, cert, key, name)
	} else if ca+cert+key+name != "" {
		err = errors.New("ca, cert, key and server_name are for tls=true")
	}
	return servers, opts, err
}

// parseACL reads scheme:id:permissions, separated by commas. An id may contain colons.
func parseACL(text string) (all []ACL, err error) {
	if text == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		scheme, rest, _ := strings.Cut(one, ":")
		at := strings.LastIndexByte(rest, ':')
		if at < 0 {
			return nil, errors.New("acl: want scheme:id:permissions, such as world:anyone:r")
		}
		all = append(all, ACL{Scheme: scheme, ID: rest[:at], Perms: rest[at+1:]})
	}
	return all, nil
}
