package pglock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
)

func init() {
	driver.Register("postgres", open)
	driver.Register("postgresql", open)
}

// libpq lists the parameters that mean what libpq says.
var libpq = []string{"host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "target_session_attrs"}

// open connects to the server that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	config, opts, session, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // as what Params finds wrong
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	if session != nil {
		return openSession(ctx, config.ConnConfig, session)
	}
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	s := New(pool, opts)
	s.close = pool.Close
	return s, nil
}

// connect makes a pool with one connection to begin with.
func connect(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// parse reads a URL. The options of a session are nil in lease mode.
func parse(u *url.URL) (*pgxpool.Config, *Options, *SessionOptions, error) {
	p := driver.NewParams(u)
	var session *SessionOptions
	opts, conns, listen := &Options{}, 1, ""
	if p.OneOf("mode", "lease", "session") == "session" {
		session = &SessionOptions{Sequence: p.String("sequence", "")}
	} else {
		opts.Table = p.String("table", "")
		conns = p.Int("conns", 4, 1, 100)
		listen = p.String("listen", "")
	}
	rest := url.Values{}
	for _, name := range libpq {
		if value := p.String(name, ""); value != "" {
			rest.Set(name, value)
		}
	}
	if err := p.Err(); err != nil {
		return nil, nil, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, nil, nil, errors.New("want postgres://user:password@host:port/database")
	}
	config, err := configure(u, rest)
	if err != nil {
		return nil, nil, nil, err
	}
	config.MaxConns = int32(conns)
	if listen != "" {
		at := *u
		at.Host = listen
		rest.Del("host")
		rest.Del("port")
		direct, err := configure(&at, rest)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("listen=%s: %w", listen, err)
		}
		opts.Listen = direct.ConnConfig
	}
	return config, opts, session, nil
}

// configure says how to connect to the hosts of a URL, which may be among the
// parameters.
func configure(u *url.URL, params url.Values) (*pgxpool.Config, error) {
	at, params := *u, maps.Clone(params)
	otherwise := func(name, variable, value string) {
		if !params.Has(name) && os.Getenv(variable) == "" {
			params.Set(name, value)
		}
	}
	names := strings.Split(cmp.Or(params.Get("host"), u.Host, os.Getenv("PGHOST")), ",")
	if len(names) > 1 {
		otherwise("target_session_attrs", "PGTARGETSESSIONATTRS", "read-write")
	}
	if slices.ContainsFunc(names, remote) {
		otherwise("sslmode", "PGSSLMODE", "verify-full")
	}
	otherwise("connect_timeout", "PGCONNECT_TIMEOUT", "5")
	at.RawQuery = params.Encode()
	config, err := pgxpool.ParseConfig(at.String())
	if err != nil {
		return nil, withoutURL(err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = "holdfast"
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // else it is the database's
	return config, nil
}

// withoutURL is what was wrong with a URL, without repeating it.
func withoutURL(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// remote reports whether a host, with or without its port, is not this machine.
func remote(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name != "" && name != "localhost" && !strings.HasPrefix(name, "/") && (ip == nil || !ip.IsLoopback())
}
