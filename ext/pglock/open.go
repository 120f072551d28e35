package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
)

func init() {
	driver.Register("postgres", open)
	driver.Register("postgresql", open)
}

// libpq lists the parameters that mean what libpq says.
var libpq = []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "target_session_attrs"}

// open connects to the server that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	config, opts, session, err := parse(u)
	if err != nil {
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
	var between bool
	err = pool.AcquireFunc(ctx, func(c *pgxpool.Conn) (err error) {
		between, err = pooled(ctx, c.Conn())
		return err
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	if between && config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeExec {
		// What one connection prepares, the next may not know.
		pool.Close()
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		return connect(ctx, config)
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
	if strings.Contains(u.Host, ",") && !rest.Has("target_session_attrs") {
		rest.Set("target_session_attrs", "read-write")
	}
	if !rest.Has("sslmode") && os.Getenv("PGSSLMODE") == "" && !local(u) {
		rest.Set("sslmode", "verify-full")
	}
	at := *u
	at.RawQuery = rest.Encode()
	config, err := pgxpool.ParseConfig(at.String())
	if err != nil {
		return nil, nil, nil, withoutURL(err)
	}
	config.MaxConns = int32(conns)
	config.ConnConfig.RuntimeParams["application_name"] = "holdfast"
	if listen != "" {
		at.Host = listen
		direct, err := pgx.ParseConfig(at.String())
		if err != nil {
			return nil, nil, nil, fmt.Errorf("listen=%s: %w", listen, withoutURL(err))
		}
		direct.RuntimeParams["application_name"] = "holdfast"
		opts.Listen = direct
	}
	return config, opts, session, nil
}

// withoutURL is what was wrong with a URL, without repeating it.
func withoutURL(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// local reports whether all servers are on this machine.
func local(u *url.URL) bool {
	for host := range strings.SplitSeq(u.Host, ",") {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = strings.Trim(host, "[]")
		}
		ip := net.ParseIP(name)
		if name != "" && name != "localhost" && !strings.HasPrefix(name, "/") && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return u.Host != "" || !strings.Contains(os.Getenv("PGHOST"), ".")
}
