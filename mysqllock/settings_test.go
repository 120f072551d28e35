package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// TestAutocommit: on a server that commits nothing by itself, a lock is seen by
// all, and a database that somebody else has opened is refused.
func TestAutocommit(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "innodb_flush_method = nosync", "autocommit = 0", "innodb_flush_log_at_trx_commit = 2")
	if err := opened(t, server.URL()).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lockers [2]*holdfast.Locker
	for i := range lockers {
		lockers[i] = servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, server.URL(), nil) })
		t.Cleanup(func() { lockers[i].Close() })
	}
	sessiontest.Locked(t, lockers[0], "key")
	if _, err := servers.Patient(sessiontest.Bounded(t), lockers[1].TryLock, "key"); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("the second lock returned %v, want ErrHeld", err)
	}

	if err := unlocking.Release(sessiontest.Locked(t, lockers[0], "free").Unlock); err != nil {
		t.Fatal(err)
	}
	their := config(t, server.URL())
	their.Params = nil
	connector, err := mysql.NewConnector(their)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	s := must.Get(New(db, nil))
	if _, err := s.Check(t.Context()); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "autocommit is off") {
		t.Errorf("Check returned %v, want an ErrInvalid of autocommit", err)
	}
	for _, key := range []string{"key", "new", "free"} {
		if _, err := servers.Patient(sessiontest.Bounded(t), must.Get(holdfast.New(s, nil)).TryLock, key); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "autocommit is off") {
			t.Errorf("TryLock of %s returned %v, want an ErrInvalid of autocommit", key, err)
		}
	}

	s = opened(t, server.URL()).(*waking).Store
	warnings, err := s.Check(t.Context())
	if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "innodb_flush_log_at_trx_commit is not 1") {
		t.Errorf("Check returned %q and %v, want a warning of the log", warnings, err)
	}
}

// No statement waits in MariaDB for a row that a foreign transaction has locked, however long the
// server lets others wait. The store tries again until the caller leaves.
func TestLockedRow(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "innodb_flush_method = nosync", "innodb_lock_wait_timeout = 100000")
	s := opened(t, server.URL()).(*waking)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim := driver.Claim{Key: "key", ID: "holder", Weight: 1, Limit: 1, TTL: time.Hour}
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: claim}); err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	connector, err := mysql.NewConnector(config(t, server.URL()))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "UPDATE holdfast SET since = since WHERE name = 'key'"); err != nil {
		t.Fatal(err)
	}
	waits := func() string {
		return strings.TrimSpace(server.Must("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'innodb_row_lock_waits'"))
	}
	renew := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return s.Renew(ctx, []driver.Renewal{{Claim: claim}})[0]
	}
	before := waits()
	servers.Until(t, "a renewal that ends with the context, and with the reason", func() bool { // A pause of this machine may end it before the first try.
		err := renew(200 * time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a renewal returned %v, want the end of the context", err)
		}
		return strings.Contains(err.Error(), "1205")
	})
	if after := waits(); after != before {
		t.Errorf("%s waits for rows, and %s afterwards", before, after)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := renew(time.Minute); err != nil {
		t.Errorf("a renewal after the transaction: %v", err)
	}
}
