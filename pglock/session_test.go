package pglock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

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
	return sessiontest.Locker(t, newSession(t, url), opts)
}

func TestSessionRefusesPooler(t *testing.T) {
	t.Parallel()
	modes := []string{"transaction", "session"}
	if testing.Short() {
		modes = modes[:1]
	}
	for _, mode := range modes {
		bouncer := servers.StartPgBouncer(t, server, mode)
		err := sessiontest.Refused(t, bouncer.URL()+"&mode=session")
		expectInvalid(t, err, "connect to the server itself, or use lease mode")
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestSessionRefusesStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
	t.Parallel()
	primary := servers.StartPostgres(t)
	prepared(t, primary.URL())
	standby := servers.StartStandby(t, primary)
	err := sessiontest.Refused(t, standby.URL()+"&mode=session")
	if !strings.Contains(err.Error(), "standby") {
		t.Errorf("got the error %v, want one that names the standby", err)
	}
}

// TestSessionOwner looks at what an operator sees in pg_stat_activity.
func TestSessionOwner(t *testing.T) {
	t.Parallel()
	lk := locker(t, server.URL(), &holdfast.Options{Owner: "owner of TestSessionOwner"})
	sessiontest.Locked(t, lk, "owner")
	got := server.Must(`SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
		WHERE locktype = 'advisory' AND application_name LIKE 'owner of%' AND mode = 'ExclusiveLock'`)
	if strings.TrimSpace(got) != "owner of TestSessionOwner" {
		t.Errorf("the holder is shown as %q", got)
	}
}

// TestSessionCrash kills the server while locks are held and waited for. Tokens grow though
// their last ones never reached the disk.
func TestSessionCrash(t *testing.T) {
	t.Parallel()
	pg := servers.StartPostgres(t, "wal_writer_delay = 10s", "fsync = off")
	opts := &holdfast.Options{TTL: sessiontest.Patience}
	a, b := locker(t, prepared(t, pg.URL()), opts), locker(t, pg.URL(), opts)
	before, after := sessiontest.Crash(t, pg, a, b, func() { waited(t, pg, sessiontest.Waiters) })
	highest := slices.Max(before)
	for _, token := range after {
		if token != 0 && token <= highest {
			t.Errorf("token %d came after the crash, and %d was given before", token, highest)
		}
	}
}

// TestSessionSilent cuts a holder off. A write with its token is refused once another has
// the lock.
func TestSessionSilent(t *testing.T) {
	t.Parallel()
	proxy, url := linked(t)
	opts := &holdfast.Options{TTL: sessiontest.SilentTTL}
	earlier, later := sessiontest.Silent(t, locker(t, url, opts), locker(t, server.URL(), opts), func() { proxy.Blackhole(true) })
	fences := fence.SQL{Table: "fences_of_sessions"}
	conn := guarded(t, fences)
	for _, write := range []struct {
		token   uint64
		refused bool
	}{{later, false}, {earlier, true}} {
		err := CheckFence(sessiontest.Bounded(t), conn, fences, "silent", write.token)
		if refused := errors.Is(err, fence.ErrOutdated); refused != write.refused || !refused && err != nil {
			t.Errorf("a write with token %d of %d and %d: %v", write.token, earlier, later, err)
		}
	}
}

// guarded makes the table of fences and returns a connection to check them by.
func guarded(t *testing.T, fences fence.SQL) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(sessiontest.Bounded(t), config(t, server.URL()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	fences.Dialect = dialect.Postgres
	statements, err := fences.Schema()
	if err == nil {
		_, err = conn.Exec(sessiontest.Bounded(t), strings.Join(statements, ";\n"))
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
	l := sessiontest.Locked(t, lk, "ended")
	earlier := l.Fence()
	server.Must(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'TestSessionEnded'`)
	sessiontest.Ends(t, l)
	if !strings.Contains(l.Err().Error(), "terminating connection due to administrator command") {
		t.Errorf("the reason is %v", l.Err())
	}
	if next := sessiontest.Locked(t, lk, "ended"); next.Fence() <= earlier {
		t.Errorf("token %d came after %d", next.Fence(), earlier)
	}
}

// TestSessionClock sets the clock of the server forward and back: a session does not end as long as
// the server does not look for a silence, and tokens grow.
func TestSessionClock(t *testing.T) {
	t.Parallel()
	clock := servers.StartClock(t)
	pg := servers.StartPostgres(clock, "fsync = off")
	// With a short TTL, the server might look during a step whether the silence is over.
	opts := &holdfast.Options{TTL: sessiontest.Patience}
	a, b := locker(t, prepared(t, pg.URL()), opts), locker(t, pg.URL(), opts)
	held, last := sessiontest.Locked(t, a, "held"), uint64(0)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		clock.Step(step)
		if _, err := servers.Patient(sessiontest.Bounded(t), b.TryLock, "held"); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("with the clock %v from the right time: %v, want ErrHeld", step, err)
		}
		next := sessiontest.Locked(t, b, "free")
		if next.Fence() <= last {
			t.Errorf("token %d after %d", next.Fence(), last)
		}
		last = next.Fence()
		if err := unlocking.Release(next.Unlock); err != nil {
			t.Error(err)
		}
	}
	if err := held.Err(); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
}

// TestSessionWaiters counts the connections of 1,000 waiters, or a tenth in the short form.
func TestSessionWaiters(t *testing.T) {
	t.Parallel()
	waiters := 1000
	if testing.Short() {
		waiters = 100
	}
	pg, opts := server.Database(t), &holdfast.Options{TTL: sessiontest.Patience}
	holder, lk := locker(t, prepared(t, pg.URL()), opts), locker(t, pg.URL(), opts)
	var held []*holdfast.Lock
	for i := range waiters {
		held = append(held, sessiontest.Locked(t, holder, fmt.Sprint("waiters/", i)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*sessiontest.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			l, err := servers.Patient(ctx, lk.Lock, fmt.Sprint("waiters/", i))
			if err != nil {
				t.Error(err)
				return
			}
			if err := unlocking.Release(l.Unlock); err != nil {
				t.Error(err)
			}
		})
		if n := i + 1; n%100 == 0 { // A slow server does not answer a thousand in time.
			waited(t, pg, n)
		}
	}
	// The server may still end the connection by which waited has looked.
	servers.Until(t, fmt.Sprint("two connections of two processes, one with ", waiters, " waiters"), func() bool {
		n := pg.Must(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND client_port IS NOT NULL AND application_name <> 'psql'`)
		return strings.TrimSpace(n) == "2"
	})
	for _, l := range held {
		if err := unlocking.Release(l.Unlock); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// waited returns once so many wait in two sessions, by the locks that say so.
// Each session has one besides.
func waited(t *testing.T, pg *servers.Postgres, waiters int) {
	t.Helper()
	conn, err := pgx.Connect(sessiontest.Bounded(t), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	servers.Until(t, fmt.Sprint(waiters, " waiters"), func() bool {
		var marks int
		err := conn.QueryRow(sessiontest.Bounded(t), `SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
			WHERE datname = current_database() AND locktype = 'advisory' AND mode = 'ShareLock'`).Scan(&marks)
		return err == nil && marks == waiters+2
	})
}
