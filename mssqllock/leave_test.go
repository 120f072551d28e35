package mssqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// exclusive is a claim for an hour.
func exclusive(key string) driver.Claim {
	return driver.Claim{Key: key, ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Hour}
}

// hold acquires a key.
func hold(t testing.TB, s driver.Store, key string) driver.Claim {
	t.Helper()
	c := exclusive(key)
	servers.Insist(t, func(ctx context.Context) (driver.Grant, error) {
		g, err := s.Acquire(ctx, driver.Ask{Claim: c})
		if err == nil && !g.OK {
			err = errors.New("the key is held")
		}
		return g, err
	})
	return c
}

// block locks the row of a key in a transaction of its own.
func (s *server) block(t testing.TB, key string) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	if _, err := tx.Exec("UPDATE holdfast SET since = since WHERE name = @p1", []byte(key)); err != nil {
		t.Fatal(err)
	}
	return tx
}

// TestLeaversKeepNoConnection: callers give up in front of a locked row again and again, as many as
// there are connections. Renewals go on.
func TestLeaversKeepNoConnection(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	s := own.prepared(t, "&conns=4&wake=false")
	mine, blocked := hold(t, s, "mine"), hold(t, s, "blocked")
	own.block(t, blocked.Key)
	var leavers sync.WaitGroup
	for i := range 4 {
		leavers.Go(func() {
			for range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
				var err error
				if i < 3 {
					_, err = s.Acquire(ctx, driver.Ask{Claim: exclusive(blocked.Key), Wait: true})
				} else {
					err = s.(driver.Inspector).Break(ctx, blocked.Key, driver.PublicID(blocked.ID))
				}
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a caller that left got %v, want the end of its context", err)
				}
			}
		})
	}
	for range 10 {
		if errs := s.Renew(sessiontest.Bounded(t), []driver.Renewal{{Claim: mine}}); errs[0] != nil {
			t.Errorf("a renewal returned %v", errs[0])
		}
	}
	leavers.Wait()
}

// TestOneLockedRow: the claims of a batch are renewed beside a claim whose row is locked. The claim
// follows when the row is free.
func TestOneLockedRow(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	s := own.prepared(t, "&wake=false")
	renewals := make([]driver.Renewal, 20)
	for i := range renewals {
		renewals[i].Claim = hold(t, s, "key "+rand.Text())
		renewals[i].TTL = 3 * time.Hour
	}
	const locked = 7
	tx := own.block(t, renewals[locked].Key)
	renewed, bounded := make(chan error, 1), sessiontest.Bounded(t)
	go func() { renewed <- errors.Join(s.Renew(bounded, renewals)...) }()
	for i := range renewals {
		if i == locked {
			continue
		}
		servers.Await(t, "a renewal beside the locked row", func() error {
			holders, err := s.(driver.Inspector).Holders(bounded, renewals[i].Key)
			if err == nil && (len(holders) != 1 || holders[0].Left < 2*time.Hour) {
				err = fmt.Errorf("renewal %d has not come, of %v", i, holders)
			}
			return err
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if errs := s.Renew(ctx, renewals[locked:locked+1]); !errors.Is(errors.Join(errs...), context.DeadlineExceeded) {
		t.Errorf("a renewal of the locked row returned %v", errs)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Errorf("renewals after the transaction: %v", err)
	}
}

// TestLateWrite: an Acquire may be applied after its caller has left. A late release ends the
// claim, whenever that is.
func TestLateWrite(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	s := own.prepared(t, "&wake=false")
	for range 5 {
		before := hold(t, s, "key")
		if errs := s.Release(sessiontest.Bounded(t), []driver.Release{{Claim: before}}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		tx := own.block(t, "key")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		left := exclusive("key")
		_, err := s.Acquire(ctx, driver.Ask{Claim: left})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller that left got %v, want the end of its context", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		servers.Insist(t, func(ctx context.Context) (any, error) {
			err := s.Release(ctx, []driver.Release{{Claim: left, Late: true}})[0]
			if errors.Is(err, driver.ErrLost) {
				err = nil
			}
			return nil, err
		})
		next := hold(t, s, "key")
		if errs := s.Release(sessiontest.Bounded(t), []driver.Release{{Claim: next}}); errs[0] != nil {
			t.Fatal(errs[0])
		}
	}
}

// TestSettings: a store works on connections with any settings, beside a store with the defaults.
func TestSettings(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	others := own.prepared(t, "&wake=false")
	// Without the option, a server refuses the first statement at snapshot isolation.
	if _, err := own.db.ExecContext(t.Context(), "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON"); err != nil {
		t.Logf("the server does not know the option of the database: %v", err) // Babelfish
	}
	for _, setting := range []string{
		"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		"SET TRANSACTION ISOLATION LEVEL SNAPSHOT", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
		"SET IMPLICIT_TRANSACTIONS ON", "SET NOCOUNT ON", "SET XACT_ABORT ON", "SET LOCK_TIMEOUT 1",
	} {
		db := own.with(t, setting)
		var refused mssql.Error
		switch err := db.PingContext(t.Context()); {
		case errors.As(err, &refused): // by Babelfish: the first two, and others
			t.Logf("the server does not know %s: %v", setting, err)
			continue
		case err != nil:
			t.Fatalf("%s: %v", setting, err)
		}
		s := must.Get(New(db, nil))
		c := hold(t, s, setting)
		if errs := s.Renew(sessiontest.Bounded(t), []driver.Renewal{{Claim: c}}); errs[0] != nil {
			t.Errorf("%s: a renewal returned %v", setting, errs[0])
		}
		if holders, err := others.(driver.Inspector).Holders(sessiontest.Bounded(t), setting); err != nil || len(holders) != 1 {
			t.Errorf("%s: others see %v, %v", setting, holders, err)
		}
		if errs := s.Release(sessiontest.Bounded(t), []driver.Release{{Claim: c}}); errs[0] != nil {
			t.Errorf("%s: a release returned %v", setting, errs[0])
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(setting, "ISOLATION") {
			continue
		}
		h := drivertest.Harness{
			Lacks: drivertest.Notify | drivertest.Watch,
			Open:  func(t testing.TB) driver.Store { return must.Get(New(db, nil)) },
		}
		for _, failure := range drivertest.Check(t, h, "together/all-methods", "batch/one-key") {
			t.Errorf("%s: %v", setting, failure)
		}
	}
}

// with opens a database whose connections have a setting.
func (s *server) with(t *testing.T, setting string) *sql.DB {
	t.Helper()
	connector, err := mssql.NewConnector(s.url)
	if err != nil {
		t.Fatal(err)
	}
	connector.SessionInitSQL = setting
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}
