package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

func init() {
	driver.Register("mysql", open)
	driver.Register("mariadb", open)
}

// open connects to the server that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	settings, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // an error of Params has this form already
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	// The client has a limit for dialling only, and would wait for a greeting as long as
	// the caller does.
	ctx, cancel := context.WithTimeout(ctx, settings.config.Timeout)
	defer cancel()
	if settings.session != nil {
		s, err := openSession(ctx, settings.config, settings.session)
		if err != nil {
			return nil, hosturl.Unproven(imitates(err), unproven)
		}
		s.warnings = settings.warnings()
		return s, nil
	}
	connector, err := mysql.NewConnector(settings.config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(settings.conns)
	db.SetMaxIdleConns(settings.conns)
	db.SetConnMaxIdleTime(idle)
	db.SetConnMaxLifetime(lifetime)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, hosturl.Unproven(imitates(err), unproven)
	}
	s, err := New(db, settings.opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", driver.ErrURL, err), db.Close())
	}
	s.close, s.warnings = db.Close, settings.warnings()
	if !settings.wake {
		return s, nil
	}
	b, err := newBell(settings.config, settings.opts.Table)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return newWaking(s, b), nil
}

// imitates names the reason if a server does not take the settings of a connection. MySQL and
// MariaDB take the settings of every user.
func imitates(err error) error {
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) && strings.Contains(e.Message, "ariable") {
		return fmt.Errorf("%w: the server does not take a setting that MySQL and MariaDB take, so it only looks like MySQL, as go-mysql-server and Dolt do: %w", driver.ErrInvalid, err)
	}
	return err
}

const unproven = "ca=FILE names who has signed it, tls=skip-verify trusts any certificate"

// idle is how long an unused connection is kept: less than every server waits.
const idle = 30 * time.Second

// lifetime is how long a connection is kept. The limit lets callers that only read, too,
// reach a new server behind the same address.
const lifetime = 3 * time.Minute
