package leases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// says fails if an error does not say what is wrong, or says too much.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("nothing is said to be wrong, want %q", words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not say %q", err, word)
		}
	}
	for _, secret := range []string{"secret", "s3same", "wr0ng"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error %q shows a password", err)
		}
	}
}

// as returns a URL with another user.
func as(at, user, password string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

const dropRole = "DROP OWNED BY %[1]s; DROP ROLE %[1]s"

func TestErrorsOfConnecting(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		denied, unknown := "password authentication failed", "does not exist"
		if e == mariadb {
			denied, unknown = "Access denied", "Unknown database"
		}
		at := e.shared.URL()
		_, err := driver.Open(t.Context(), as(at, "root", "wr0ng"))
		says(t, err, denied)
		_, err = driver.Open(t.Context(), within(at, "nowhere"))
		says(t, err, "nowhere", unknown)
		proxy := servers.StartProxy(t, e.shared.Addr())
		proxy.Refuse(true)
		_, err = driver.Open(t.Context(), through(at, proxy.Addr()))
		says(t, err, "connection refused")
	})
}

// A user who may read but not write hears which rights are missing, and so does a user who
// may do neither.
func TestErrorsOfRights(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		var user string
		if e == postgres {
			user = unique(t, e.shared, "looker", dropRole)
			e.shared.Must("CREATE ROLE " + user + " LOGIN PASSWORD 's3same'; GRANT SELECT ON " + table(at) + " TO " + user)
		} else {
			user = unique(t, e.shared, "looker", "DROP USER %[1]s")
			e.shared.Must("CREATE USER " + user + "@'%' IDENTIFIED BY 's3same'; GRANT SELECT ON " + table(at) + " TO " + user)
		}
		held := lock(t, locker(t, at, nil), "held")
		looker := open(t, as(at, user, "s3same"))
		if holders, err := looker.Holders(t.Context(), "held"); err != nil || len(holders) != 1 || holders[0].Fence != held.Fence() {
			t.Errorf("who may read sees %+v, %v", holders, err)
		}
		locks := lockerOf(t, looker, nil)
		for _, key := range []string{"held", "free"} {
			_, err := servers.Patient(t.Context(), locks.Lock, key)
			says(t, err, table(at), "INSERT, UPDATE and DELETE")
			if !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("%s: %v is tried again and again", key, err)
			}
		}
		says(t, looker.Create(t.Context()), "the right to create tables")
	})
}

// A server that has no connection left, or ends them, is the core's to ride out.
func TestErrorsThatPass(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		s := e.start(t, "max_connections = 12", e.nosync)
		at := create(t, s.URL())
		a := locker(t, at, &holdfast.Options{TTL: 30 * time.Second})
		held := lock(t, a, "held")
		b := locker(t, at, nil)
		got := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			l, err := servers.Patient(ctx, b.Lock, "held")
			if err == nil {
				err = unlock(l)
			}
			got <- err
		}()
		servers.Until(t, "the one who waits", func() bool { return line(t, a, "held") == 1 })

		full := "too many clients"
		if e == mariadb {
			full = "Too many connections"
		}
		var db *sql.DB
		if e == postgres {
			var err error
			db, err = sql.Open("pgx", s.URL())
			succeed(t, err)
		} else {
			db = source(t, s.URL(), "")
		}
		var conns []*sql.Conn
		// A pool that ends a connection makes room for Open.
		servers.Await(t, "a full server", func() error {
			conn, err := db.Conn(t.Context())
			for ; err == nil; conn, err = db.Conn(t.Context()) {
				conns = append(conns, conn)
			}
			says(t, err, full)
			opened, err := driver.Open(t.Context(), at)
			switch {
			case err == nil:
				return errors.Join(errors.New("a connection was free"), opened.Close())
			case !strings.Contains(err.Error(), full):
				return err
			}
			says(t, err, full)
			return nil
		})
		for _, conn := range conns {
			conn.Close()
		}
		db.Close()

		// Everybody is thrown out.
		everybody := "SELECT id FROM information_schema.processlist WHERE db = 'holdfast' AND id <> connection_id()"
		if e == postgres {
			everybody = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
		}
		for range 3 {
			var ids string
			servers.Await(t, "a free connection", func() (err error) { ids, err = s.Do(everybody); return err })
			if e == postgres {
				continue
			}
			for id := range strings.FieldsSeq(ids) {
				_, _ = s.Do("KILL HARD CONNECTION " + id) // It may be gone.
			}
		}
		succeed(t, held.Err())
		succeed(t, unlock(held))
		succeed(t, <-got)
	})
}

// A user has locked the row by hand. A caller for the key waits no longer than the call
// may, and goes on when the row is free.
func TestErrorsOfRowLocks(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		s := open(t, at)
		claim := exclusive("key", "a")
		_, err := s.Acquire(t.Context(), claim)
		succeed(t, err)
		db, _ := e.pool(t, at, 1)
		tx, err := db.BeginTx(t.Context(), nil)
		succeed(t, err)
		_, err = tx.ExecContext(t.Context(), "UPDATE "+table(at)+" SET since = since WHERE name <> ''")
		succeed(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begun := time.Now()
		err = s.Renew(ctx, asks.Renewals(claim))[0]
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) {
			t.Errorf("a row that somebody has locked: %v; want an error that leaves it open", err)
		}
		if took := time.Since(begun); took > patience {
			t.Errorf("it took %v", took)
		}
		succeed(t, tx.Rollback())
		succeed(t, s.Renew(t.Context(), asks.Renewals(claim))[0])
	})
}

// A role whose statements are ended after a while hears so.
func TestErrorsOfTimeouts(t *testing.T) {
	t.Parallel()
	at := create(t, postgres.shared.URL())
	hasty := unique(t, postgres.shared, "hasty", dropRole)
	postgres.shared.Must("CREATE ROLE " + hasty + " LOGIN PASSWORD 's3same'; GRANT ALL ON " + table(at) + " TO " + hasty)
	s := open(t, at)
	claim := exclusive("key", "a")
	_, err := s.Acquire(t.Context(), claim)
	succeed(t, err)
	db, _ := postgres.pool(t, at, 1)
	tx, err := db.BeginTx(t.Context(), nil)
	succeed(t, err)
	_, err = tx.ExecContext(t.Context(), "UPDATE "+table(at)+" SET since = since WHERE name <> ''")
	succeed(t, err)
	for setting, words := range map[string]string{"statement_timeout": "57014", "lock_timeout": "55P03"} {
		postgres.shared.Must(fmt.Sprintf("ALTER ROLE %s RESET ALL; ALTER ROLE %[1]s SET %s = '1s'", hasty, setting))
		var ended store
		servers.Await(t, "an opening that takes less than the timeout", func() error {
			opened, err := driver.Open(t.Context(), as(at, hasty, "s3same"))
			if err == nil {
				ended = opened.(store)
			}
			return err
		})
		t.Cleanup(func() { ended.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := ended.Renew(ctx, asks.Renewals(claim))[0]
		cancel()
		says(t, err, words)
	}
	succeed(t, tx.Rollback())
}

// A standby says that it only reads, and stays wrong until it is promoted.
func TestErrorsOfStandbys(t *testing.T) {
	t.Parallel()
	primary := servers.StartPostgres(t, postgres.nosync)
	at := create(t, primary.URL())
	held := lock(t, locker(t, at, nil), "key")
	standby := servers.StartStandby(t, primary, postgres.nosync)
	s := open(t, through(at, standby.Addr()))
	if holders, err := s.Holders(t.Context(), "key"); err != nil || len(holders) != 1 || holders[0].Fence != held.Fence() {
		t.Errorf("the standby shows %+v, %v", holders, err)
	}
	_, err := s.Acquire(t.Context(), exclusive("new", "a"))
	says(t, err, "read-only", "takes no writes")
	if errors.Is(err, driver.ErrInvalid) {
		t.Errorf("%v is not tried again", err)
	}
	standby.Promote()
	g, err := s.Acquire(t.Context(), exclusive("new", "a"))
	if err != nil || !g.OK {
		t.Errorf("after its promotion: %+v, %v", g, err)
	}
}
