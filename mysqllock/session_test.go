package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

func newSession(t testing.TB, config *mysql.Config) *Session {
	t.Helper()
	s := must.Get(NewSession(config, nil))
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	return s
}

func TestSessionContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{
		MinTTL: time.Second,
		Open: func(t testing.TB) driver.Store {
			s := newSession(t, config(t, server))
			s.server.proved.Store(true) // else each of a hundred stores would prove the server
			return s
		},
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p, url := linked(t)
			return newSession(t, config(t, url)), p
		},
		Lacks: sessionLacks,
	})
}

const sessionLacks = drivertest.Readers | drivertest.Slots | drivertest.Raise | drivertest.Queue |
	drivertest.Tombstones | drivertest.Details | drivertest.Reasons |
	drivertest.Outlive | drivertest.Roam | drivertest.Inspect

func config(t testing.TB, at string) *mysql.Config {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parse(u)
	if err != nil {
		t.Fatal(err)
	}
	return s.config
}

// locker opens a locker in session mode that is closed when the test ends.
func locker(t *testing.T, url string, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	return sessiontest.Locker(t, newSession(t, config(t, url)), opts)
}

// TestSessionCrash kills the server while locks are held and waited for. Tokens of each key
// grow.
func TestSessionCrash(t *testing.T) {
	t.Parallel()
	maria := servers.StartMariaDB(t, "innodb_flush_method = nosync")
	refused := make(chan string, 1000)
	a := locker(t, maria.URL(), &holdfast.Options{TTL: sessiontest.Patience})
	b := locker(t, maria.URL(), &holdfast.Options{TTL: sessiontest.Patience, Trace: &holdfast.Trace{Tried: func(e holdfast.Event) {
		if !errors.Is(e.Err, holdfast.ErrHeld) {
			return
		}
		select {
		case refused <- e.Key:
		default:
		}
	}}})
	before, after := sessiontest.Crash(t, maria, a, b, func() {
		for wait := make(map[string]bool); len(wait) < sessiontest.Waiters; {
			wait[<-refused] = true
		}
	})
	for i, token := range after {
		if token != 0 && token <= before[i] {
			t.Errorf("key %d has token %d after the crash, and %d before", i, token, before[i])
		}
	}
}

// TestSessionSilent cuts a holder off.
func TestSessionSilent(t *testing.T) {
	t.Parallel()
	proxy, through := linked(t)
	opts := &holdfast.Options{TTL: sessiontest.SilentTTL}
	sessiontest.Silent(t, locker(t, through, opts), locker(t, server, opts), func() { proxy.Blackhole(true) })
}

func TestSessionWithoutTable(t *testing.T) {
	t.Parallel()
	for table, words := range map[string]string{
		"absent": "the table absent, which gives tokens, is missing",
		"a%60b":  "letters, digits",
	} {
		err := sessiontest.Refused(t, server+"?mode=session&table="+table)
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("got the error %v, want an ErrInvalid with %q", err, words)
		}
	}
}

// TestSessionTables takes one key through three names, two of which are of the
// same table.
func TestSessionTables(t *testing.T) {
	t.Parallel()
	at := config(t, server)
	take := func(table string) (*holdfast.Lock, error) {
		s := must.Get(NewSession(at, &SessionOptions{Table: table}))
		lk := must.Get(holdfast.New(s, nil))
		t.Cleanup(func() { lk.Close() })
		if err := s.Create(sessiontest.Bounded(t)); err != nil {
			t.Fatal(err)
		}
		lock, err := servers.Patient(sessiontest.Bounded(t), lk.TryLock, "key of tables")
		t.Cleanup(func() { runtime.KeepAlive(lock) }) // The lock is not lost as garbage.
		return lock, err
	}
	for _, name := range []string{"one_fence", "other_fence"} {
		if _, err := take(name); err != nil {
			t.Errorf("%s: %v, want the key, as tables are apart", name, err)
		}
	}
	if _, err := take(at.DBName + ".one_fence"); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("the same table under its full name: %v, want ErrHeld", err)
	}
}

// TestSessionRefusesOldServer has the second lock of a session refused, as if it
// could have one only: another has taken that of all sessions to come.
func TestSessionRefusesOldServer(t *testing.T) {
	t.Parallel()
	at := config(t, servers.StartMariaDB(t, "innodb_flush_method = nosync").URL())
	if err := must.Get(NewSession(at, nil)).Create(sessiontest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", at.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := db.Conn(sessiontest.Bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if _, err := other.ExecContext(sessiontest.Bounded(t), fmt.Sprintf("DO GET_LOCK(CONCAT('holdfast probe 2 ', CONNECTION_ID() + %d), 0)", n)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = must.Get(NewSession(at, nil)).Check(sessiontest.Bounded(t))
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "session mode needs MySQL 5.7.5 or MariaDB 10.0.2 or newer") {
		t.Errorf("got the error %v, want an ErrInvalid that names versions", err)
	}
}

// TestSessionEndHasReason ends a session while the server has not answered. The request
// fails with the reason, and not with the error of a context that no caller knows.
func TestSessionEndHasReason(t *testing.T) {
	t.Parallel()
	proxy, through := linked(t)
	s := newSession(t, config(t, through))
	lost := make(chan error, 1)
	conn, err := s.server.Open(sessiontest.Bounded(t), "", sessiontest.Patience, session.Events{Ending: func(error) {}, Lost: func(err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Blackhole(true)
	failed := make(chan error, 1)
	before := proxy.Requests.Touched()
	conn.Try(s.server.Name("reason"), false, func(_ uint64, err error) { failed <- err })
	servers.Until(t, "the request to be under way", func() bool { return proxy.Requests.Touched() > before })
	why := errors.New("the reason")
	conn.Close(why)
	if err := <-failed; err != why {
		t.Errorf("the request failed with %v, want %v", err, why)
	}
	if err := <-lost; err != why {
		t.Errorf("the session ended with %v, want %v", err, why)
	}
}
