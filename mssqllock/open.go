package mssqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

func init() { driver.Register("sqlserver", open) }

// open connects to the server that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	settings, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // an error of Params has this form already
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	ctx, cancel := context.WithTimeout(ctx, settings.config.DialTimeout)
	defer cancel()
	connector, sever := severable(settings.config)
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(settings.conns)
	db.SetMaxIdleConns(settings.conns)
	db.SetConnMaxIdleTime(idle)
	db.SetConnMaxLifetime(lifetime)
	answered := make(chan error, 1)
	go func() { answered <- db.PingContext(context.WithoutCancel(ctx)) }()
	select {
	case err = <-answered:
	case <-ctx.Done(): // see connector
		sever()
		err = fmt.Errorf("%w: %w", ctx.Err(), <-answered)
	}
	if err != nil {
		db.Close()
		return nil, hosturl.Unproven(err, unproven)
	}
	s, err := New(db, &Options{Table: settings.table})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", driver.ErrURL, err), db.Close())
	}
	s.sever, s.close, s.warnings = sever, db.Close, settings.warnings()
	if !settings.wake {
		return s, nil
	}
	b, err := newBell(settings.config, settings.table)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return newWaking(s, b), nil
}

const unproven = "certificate=FILE names who has signed it, TrustServerCertificate=true trusts any certificate"

// idle is how long an unused connection is kept: less than firewalls wait.
const idle = 30 * time.Second

// lifetime is how long a connection is kept. The limit lets callers that only read, too,
// reach a new server behind the same address.
const lifetime = 3 * time.Minute
