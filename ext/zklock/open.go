package zklock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

func init() { driver.Register("zk", open) }

// open opens a session with the ensemble that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	opts, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // as what Params finds wrong
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s := New(opts)
	if s.bad != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, s.bad)
	}
	if _, err := s.session(ctx, usual); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// parse reads a URL.
func parse(u *url.URL) (opts Options, err error) {
	p := driver.NewParams(u)
	opts.Prefix = p.String("prefix", DefaultPrefix)
	acl := p.String("acl", "")
	encrypted := p.Bool("tls", false)
	ca, cert, key, name := p.String("ca", ""), p.String("cert", ""), p.String("key", ""), p.String("server_name", "")
	if err := p.Err(); err != nil {
		return opts, err
	}
	if u.Opaque != "" || u.Fragment != "" {
		return opts, errors.New("want zk://host:port,host:port and, if you like, user:password@ before them and /chroot after them")
	}
	opts.Chroot = strings.TrimSuffix(u.Path, "/")
	if opts.Servers, err = addresses(u.Host); err != nil {
		return opts, err
	}
	if u.User != nil {
		opts.User = u.User.Username()
		opts.Password, _ = u.User.Password()
		if opts.User == "" || opts.Password == "" || strings.Contains(opts.User, ":") {
			return opts, errors.New("a user needs a name, without a colon, and a password")
		}
	}
	if opts.ACL, err = parseACL(acl); err != nil {
		return opts, err
	}
	if encrypted {
		opts.TLS, err = tlsConfig(ca, cert, key, name)
	} else if ca+cert+key+name != "" {
		err = errors.New("ca, cert, key and server_name are for tls=true")
	}
	return opts, err
}

// addresses are the servers of a URL: h1:2181,h2:2181.
func addresses(hosts string) (all []string, err error) {
	const port = "2181"
	if hosts == "" {
		return []string{"127.0.0.1:" + port}, nil
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" {
			return nil, fmt.Errorf("hosts %q: one of them is empty", hosts)
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		all = append(all, host)
	}
	return all, nil
}

// parseACL reads scheme:id:permissions, separated by commas. An id may have colons
// itself.
func parseACL(text string) (all []ACL, err error) {
	if text == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		scheme, rest, _ := strings.Cut(one, ":")
		at := strings.LastIndexByte(rest, ':')
		if at < 0 {
			return nil, fmt.Errorf("acl=%s: want scheme:id:permissions, such as world:anyone:r", one)
		}
		all = append(all, ACL{Scheme: scheme, ID: rest[:at], Perms: rest[at+1:]})
	}
	return all, nil
}

// tlsConfig reads the files that a URL names.
func tlsConfig(ca, cert, key, name string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("cert and key go together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
