package pglock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

func init() {
	driver.Register("postgres", open)
	driver.Register("postgresql", open)
}

// open connects to the server of a URL.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	config, opts, session, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // an error of Params has this form already
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	warnings := plain(&config.ConnConfig.Config)
	if opts.Listen != nil {
		warnings = append(warnings, plain(&opts.Listen.Config)...)
	}
	if session != nil {
		s, err := openSession(ctx, config.ConnConfig, session)
		if err != nil {
			return nil, hosturl.Unproven(err, unproven)
		}
		s.warnings = warnings
		return s, nil
	}
	cut := severable(&config.ConnConfig.Config)
	pool, err := connect(ctx, config)
	if err != nil {
		return nil, hosturl.Unproven(err, unproven)
	}
	s, err := New(pool, opts)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s.warnings = warnings
	s.close = func() {
		late := time.AfterFunc(closeLimit, cut)
		defer late.Stop()
		pool.Close()
	}
	return s, nil
}

const unproven = "sslrootcert=FILE names who has signed it, sslmode=require trusts any certificate"

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
	p := driver.NewParams(&url.URL{RawQuery: strings.ReplaceAll(u.RawQuery, "+", "%2B")}) // as in libpq
	var session *SessionOptions
	opts, conns, listen := &Options{}, 0, ""
	if p.OneOf("mode", "lease", "session") == "session" {
		session = &SessionOptions{Sequence: p.Text("sequence", "")}
	} else {
		opts.Table = p.Text("table", "")
		conns = p.Int("conns", 0, 1, 100)
		listen = p.Text("listen", "")
	}
	params, password := forPgx(p)
	if err := p.Err(); err != nil {
		return nil, nil, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Contains(u.EscapedPath(), "@") {
		return nil, nil, nil, errors.New("want postgres://user:password@host:port/database")
	}
	config, err := configure(u, params, password)
	if err != nil {
		return nil, nil, nil, err
	}
	if conns != 0 || !params.Has("pool_max_conns") {
		config.MaxConns = int32(cmp.Or(conns, 4))
		config.MinConns, config.MinIdleConns = min(config.MinConns, config.MaxConns), min(config.MinIdleConns, config.MaxConns)
	}
	if listen != "" {
		at := *u
		at.Host = listen
		params.Del("host")
		params.Del("port")
		direct, err := configure(&at, params, password)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("listen=%s: %w", listen, err)
		}
		opts.Listen = direct.ConnConfig
	}
	return config, opts, session, nil
}
