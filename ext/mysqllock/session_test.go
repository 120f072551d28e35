package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// patience is how long a test waits for what happens at once on a healthy
// machine.
const patience = 30 * time.Second

func newSession(t testing.TB, config *mysql.Config) *Session {
	t.Helper()
	s := NewSession(config, nil)
	if err := s.Create(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSessionContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{
		MinTTL: time.Second,
		Open:   func(t testing.TB) driver.Store { return newSession(t, config(t, server)) },
		Lacks: drivertest.Readers | drivertest.Slots | drivertest.Raise | drivertest.Queue |
			drivertest.Tombstones | drivertest.Details | drivertest.Reasons |
			drivertest.Outlive | drivertest.Roam | drivertest.Watch | drivertest.Inspect,
	})
}

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
func locker(t *testing.T, url string, opts holdfast.Options) *holdfast.Locker {
	t.Helper()
	lk := holdfast.New(newSession(t, config(t, url)), &opts)
	t.Cleanup(func() { lk.Close() })
	return lk
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func locked(t *testing.T, lk *holdfast.Locker, key string) *holdfast.Lock {
	t.Helper()
	l, err := servers.Patient(bounded(t), lk.Lock, key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSessionCrash kills the server while locks are held and waited for. All
// holders are told, all waiters get on once it is back, no key has two holders,
// and tokens grow.
func TestSessionCrash(t *testing.T) {
	t.Parallel()
	const held, waiters = 200, 50
	const ttl = patience
	maria := servers.StartMariaDB(t)
	refused := make(chan string, 1000)
	a := locker(t, maria.URL(), holdfast.Options{TTL: ttl})
	b := locker(t, maria.URL(), holdfast.Options{TTL: ttl, Trace: &holdfast.Trace{Tried: func(e holdfast.Event) {
		if !errors.Is(e.Err, holdfast.ErrHeld) {
			return
		}
		select {
		case refused <- e.Key:
		default:
		}
	}}})
	var before []*holdfast.Lock
	var tokens []uint64
	for i := range held {
		l := locked(t, a, fmt.Sprint("crash/", i))
		before, tokens = append(before, l), append(tokens, l.Fence())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			l, err := servers.Patient(ctx, b.Lock, fmt.Sprint("crash/", i))
			if err != nil {
				t.Errorf("a waiter got %v", err)
				return
			}
			if before[i].Err() == nil {
				t.Errorf("%s is held twice", l.Key())
			}
			// It has none any more if the machine was so slow that it is lost.
			if token := l.Fence(); token != 0 && token <= tokens[i] {
				t.Errorf("%s has token %d after the crash, and %d before", l.Key(), token, tokens[i])
			}
		})
	}
	for wait := make(map[string]bool); len(wait) < waiters; {
		wait[<-refused] = true
	}
	maria.Kill()
	for _, l := range before {
		select {
		case <-l.Done():
		case <-time.After(patience):
			t.Fatalf("the lock on %s was not lost within %v", l.Key(), patience)
		}
	}
	maria.Restart()
	served := time.Now()
	wg.Wait()
	if took := time.Since(served); took > ttl+10*time.Second {
		t.Errorf("the waiters got on %v after the server was back, the TTL being %v", took, ttl)
	} else {
		t.Logf("the waiters got on %v after the server was back", took)
	}
}

// TestSessionSilent cuts a holder off without a word, as a pause of its process
// or a broken network does. The server lets another in, the first one is told
// before, and its token is the smaller one.
func TestSessionSilent(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := servers.StartProxy(t, at.Host)
	first := locked(t, locker(t, strings.Replace(server, at.Host, proxy.Addr(), 1), holdfast.Options{TTL: ttl}), "silent")
	earlier := first.Fence()
	proxy.Blackhole(true)
	second := locked(t, locker(t, server, holdfast.Options{TTL: ttl}), "silent")
	if err := first.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("another has the lock, and the first holder sees %v", err)
	}
	if second.Fence() <= earlier {
		t.Errorf("the later token is %d, the earlier one %d", second.Fence(), earlier)
	}
}

func TestSessionWithoutTable(t *testing.T) {
	t.Parallel()
	for table, words := range map[string]string{
		"absent": "the table absent, which gives tokens, is missing",
		"a%60b":  "letters, digits",
	} {
		_, err := holdfast.Open(t.Context(), server+"?mode=session&table="+table, nil)
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
		s := NewSession(at, &SessionOptions{Table: table})
		lk := holdfast.New(s, nil)
		t.Cleanup(func() { lk.Close() })
		if err := s.Create(bounded(t)); err != nil {
			t.Fatal(err)
		}
		return servers.Patient(bounded(t), lk.TryLock, "key of tables")
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
	at := config(t, servers.StartMariaDB(t).URL())
	if err := NewSession(at, nil).Create(bounded(t)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", at.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := db.Conn(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if _, err := other.ExecContext(bounded(t), fmt.Sprintf("DO GET_LOCK(CONCAT('holdfast probe 2 ', CONNECTION_ID() + %d), 0)", n)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = NewSession(at, nil).Check(bounded(t))
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "session mode needs MySQL 5.7.5 or MariaDB 10.0.2 or newer") {
		t.Errorf("got the error %v, want an ErrInvalid that names versions", err)
	}
}
