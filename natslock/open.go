package natslock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/silence"
)

func init() {
	driver.Register("nats", open)
	driver.Register("natss", open)
}

// open connects to the servers in a URL.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	config, opts, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // like the errors of Params
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	conn, err := connect(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(hosts(config), ", "), hosturl.Unproven(err, "ca=FILE names who has signed it"))
	}
	s, err := New(conn, opts)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.close = conn.Close
	if u.User != nil && u.Scheme == "nats" {
		s.warnings = hosturl.Plain(strings.Split(u.Host, ","), "use natss://")
	}
	return s, nil
}

// hosts are the addresses of the servers.
func hosts(config nats.Options) (all []string) {
	for _, server := range config.Servers {
		all = append(all, strings.TrimPrefix(server, "nats://"))
	}
	return all
}

// connect connects to one of the servers before ctx ends.
func connect(ctx context.Context, config nats.Options) (*nats.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		config.Timeout = min(config.Timeout, max(time.Until(deadline), time.Millisecond))
	}
	type result struct {
		conn *nats.Conn
		err  error
	}
	done := make(chan result, 1)
	began := time.Now()
	go func() {
		conn, err := config.Connect()
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		if errors.Is(r.err, nats.ErrTimeout) || errors.Is(r.err, os.ErrDeadlineExceeded) { // the limit of the client library
			r.err = fmt.Errorf("%w: %w", context.DeadlineExceeded, r.err)
		}
		return r.conn, silence.For(ctx, r.err, time.Since(began))
	case <-ctx.Done():
		go func() {
			if r := <-done; r.conn != nil {
				r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// parse reads a URL.
func parse(u *url.URL) (config nats.Options, opts *Options, err error) {
	p := driver.NewParams(u)
	opts = &Options{Stream: p.Text("stream", DefaultStream), Replicas: p.Int("replicas", 1, 1, 5), Synced: p.Bool("synced", false)}
	ca, cert, key, creds := p.Text("ca", ""), p.Text("cert", ""), p.Text("key", ""), p.Text("creds", "")
	if err := p.Err(); err != nil {
		return config, nil, err
	}
	if err := errors.Join(checkStream(opts.Stream), checkReplicas(opts.Replicas)); err != nil {
		return config, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return config, nil, errors.New("want nats://host:port,host:port and, if you like, user:password@ before them")
	}
	addresses, err := hosturl.Addresses(u.Host, "4222")
	if err != nil {
		return config, nil, err
	}
	config = nats.GetDefaultOptions()
	for _, host := range addresses {
		config.Servers = append(config.Servers, "nats://"+host)
	}
	config.Name = "holdfast"
	// The errors of calls contain everything important. By default, the client prints.
	config.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {}
	config.Timeout = 3 * time.Second
	config.MaxReconnect = -1
	config.ReconnectWait = 50 * time.Millisecond
	config.ReconnectJitter = 50 * time.Millisecond
	config.ReconnectBufSize = -1 // A change that is sent late helps nobody.
	config.PingInterval = 2 * time.Second
	config.MaxPingsOut = 2
	config.AllowReconnect = true
	config.IgnoreAuthErrorAbort = true // A login may be refused while a password is changed.
	if u.User != nil {
		config.User = u.User.Username()
		password, both := u.User.Password()
		if !both {
			config.Token, config.User = config.User, ""
		}
		config.Password = password
	}
	if creds != "" {
		if err := nats.UserCredentials(creds)(&config); err != nil {
			return config, nil, err
		}
	}
	if u.Scheme == "natss" {
		config.Secure = true
		config.TLSConfig, err = hosturl.TLS(ca, cert, key, "")
	} else if ca+cert+key != "" {
		err = errors.New("ca, cert and key are for natss://")
	}
	return config, opts, err
}
