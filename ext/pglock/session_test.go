package pglock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/fence"
)

// patience is how long a test waits for what happens at once on a healthy
// machine.
const patience = 30 * time.Second

func config(t testing.TB, url string) *pgx.ConnConfig {
	t.Helper()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func expectInvalid(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
		t.Errorf("got the error %v, want an ErrInvalid with %q", err, words)
	}
}

// locker opens a locker in session mode that is closed when the test ends.
func locker(t *testing.T, url string, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	lk := holdfast.New(newSession(t, url), opts)
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

// ends waits until a lock is lost.
func ends(t *testing.T, l *holdfast.Lock) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(patience):
		t.Fatalf("the lock on %s was not lost within %v", l.Key(), patience)
	}
	if !errors.Is(l.Err(), holdfast.ErrLost) {
		t.Errorf("the lock on %s ended with %v, want ErrLost", l.Key(), l.Err())
	}
}

func TestSessionRefusesPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "session"} {
		bouncer := servers.StartPgBouncer(t, server, mode)
		_, err := driver.Open(t.Context(), bouncer.URL()+"&mode=session")
		expectInvalid(t, err, "connect to the server itself, or use lease mode")
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestSessionRefusesStandby(t *testing.T) {
	t.Parallel()
	primary := servers.StartPostgres(t)
	newSession(t, primary.URL()).Close()
	standby := servers.StartStandby(t, primary)
	_, err := driver.Open(t.Context(), standby.URL()+"&mode=session")
	if err == nil || !strings.Contains(err.Error(), "standby") {
		t.Errorf("got the error %v, want one that names the standby", err)
	}
}

// TestSessionOwner looks at what an operator sees in pg_stat_activity.
func TestSessionOwner(t *testing.T) {
	t.Parallel()
	lk := locker(t, server.URL(), &holdfast.Options{Owner: "owner of TestSessionOwner"})
	locked(t, lk, "owner")
	got := server.Must(`SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
		WHERE locktype = 'advisory' AND application_name LIKE 'owner of%' AND mode = 'ExclusiveLock'`)
	if strings.TrimSpace(got) != "owner of TestSessionOwner" {
		t.Errorf("the holder is shown as %q", got)
	}
}

// TestSessionCrash kills the server while locks are held and waited for. All
// holders are told, all waiters get on once it is back, no key has two holders,
// and tokens grow though their last ones never reached the disk.
func TestSessionCrash(t *testing.T) {
	t.Parallel()
	const held, waiters = 200, 50
	const ttl = patience
	pg := servers.StartPostgres(t, "wal_writer_delay = 10s")
	a := locker(t, pg.URL(), &holdfast.Options{TTL: ttl})
	b := locker(t, pg.URL(), &holdfast.Options{TTL: ttl})

	var before []*holdfast.Lock
	var highest uint64
	for i := range held {
		l := locked(t, a, fmt.Sprint("crash/", i))
		before, highest = append(before, l), max(highest, l.Fence())
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
			if token := l.Fence(); token != 0 && token <= highest {
				t.Errorf("%s has token %d after the crash, and %d was given before", l.Key(), token, highest)
			}
		})
	}
	waited(t, pg, waiters)
	pg.Kill()
	for _, l := range before {
		ends(t, l)
	}
	pg.Restart()
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
	proxy := servers.StartProxy(t, server.Addr())
	url := strings.Replace(server.URL(), server.Addr(), proxy.Addr(), 1)
	first := locked(t, locker(t, url, &holdfast.Options{TTL: ttl}), "silent")
	earlier := first.Fence()
	proxy.Blackhole(true)
	began := time.Now()
	second := locked(t, locker(t, server.URL(), &holdfast.Options{TTL: ttl}), "silent")
	if err := first.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("another has the lock, and the first holder sees %v", err)
	}
	if took := time.Since(began); took < ttl/2 {
		t.Errorf("another got in %v after the holder fell silent, whose TTL is %v", took, ttl)
	}
	fences := fence.SQL{Table: "fences_of_sessions"}
	conn := guarded(t, fences)
	for _, write := range []struct {
		token   uint64
		refused bool
	}{{second.Fence(), false}, {earlier, true}} {
		err := CheckFence(bounded(t), conn, fences, "silent", write.token)
		if refused := errors.Is(err, fence.ErrOutdated); refused != write.refused || !refused && err != nil {
			t.Errorf("a write with token %d of %d and %d: %v", write.token, earlier, second.Fence(), err)
		}
	}
}

// guarded makes the table of fences and returns a connection to check them by.
func guarded(t *testing.T, fences fence.SQL) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(bounded(t), config(t, server.URL()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	fences.Dialect = fence.Postgres
	statement, err := fences.Schema()
	if err == nil {
		_, err = conn.Exec(bounded(t), statement)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSessionEnded ends a session as an operator would: its holders are told at
// once, and the next claim opens another.
func TestSessionEnded(t *testing.T) {
	t.Parallel()
	lk := locker(t, server.URL(), &holdfast.Options{Owner: "TestSessionEnded", TTL: time.Hour})
	l := locked(t, lk, "ended")
	earlier := l.Fence()
	server.Must(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'TestSessionEnded'`)
	ends(t, l)
	if !strings.Contains(l.Err().Error(), "terminating connection due to administrator command") {
		t.Errorf("the reason is %v", l.Err())
	}
	if next := locked(t, lk, "ended"); next.Fence() <= earlier {
		t.Errorf("token %d came after %d", next.Fence(), earlier)
	}
}

// TestSessionClock sets the clock of the server forward and back: sessions do not
// end by it, and tokens grow.
func TestSessionClock(t *testing.T) {
	t.Parallel()
	clock := servers.StartClock(t)
	pg := servers.StartPostgres(clock)
	a, b := locker(t, pg.URL(), nil), locker(t, pg.URL(), nil)
	held, last := locked(t, a, "held"), uint64(0)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		clock.Step(step)
		if _, err := servers.Patient(bounded(t), b.TryLock, "held"); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("with the clock %v from the right time: %v, want ErrHeld", step, err)
		}
		next := locked(t, b, "free")
		if next.Fence() <= last {
			t.Errorf("token %d after %d", next.Fence(), last)
		}
		last = next.Fence()
		if err := next.Unlock(); err != nil {
			t.Error(err)
		}
	}
	if err := held.Err(); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
}

// TestSessionWaiters counts the connections of 1,000 waiters.
func TestSessionWaiters(t *testing.T) {
	t.Parallel()
	const waiters = 1000
	pg := servers.StartPostgres(t)
	holder, lk := locker(t, pg.URL(), nil), locker(t, pg.URL(), nil)
	var held []*holdfast.Lock
	for i := range waiters {
		held = append(held, locked(t, holder, fmt.Sprint("waiters/", i)))
	}
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			l, err := lk.Lock(bounded(t), fmt.Sprint("waiters/", i))
			if err != nil {
				t.Error(err)
				return
			}
			if err := l.Unlock(); err != nil {
				t.Error(err)
			}
		})
	}
	waited(t, pg, waiters)
	if n := pg.Must(`SELECT count(*) FROM pg_stat_activity WHERE client_port IS NOT NULL AND application_name <> 'psql'`); strings.TrimSpace(n) != "2" {
		t.Errorf("two processes, one with %d waiters, have %s connections", waiters, n)
	}
	for _, l := range held {
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// waited returns once so many wait in two sessions, by the locks that say so.
// Each session has one besides.
func waited(t *testing.T, pg *servers.Postgres, waiters int) {
	t.Helper()
	want := fmt.Sprint(waiters + 2)
	for end := time.Now().Add(patience); ; {
		marks := strings.TrimSpace(pg.Must(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'`))
		switch {
		case marks == want:
			return
		case time.Now().After(end):
			t.Fatalf("%s shared locks after %v, want %s", marks, patience, want)
		}
	}
}
