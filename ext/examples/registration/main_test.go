package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/examples/internal/terminal/terminaltest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

var server *servers.Postgres

func TestMain(m *testing.M) {
	if terminaltest.Inside() {
		main()
		return
	}
	os.Exit(servers.Main(m, func(tb servers.TB) { server = servers.AnyPostgres(tb, "synchronous_commit = off") }))
}

func clean(t *testing.T) {
	t.Helper()
	if err := run(t.Context(), server.URL(), "", "", true); err != nil {
		t.Fatal(err)
	}
}

func registration(t *testing.T, guard string) *terminaltest.Terminal {
	return terminaltest.Start(t, "-db", server.URL(), "-guard", guard, "-phone", "+49 30 90")
}

func registrations() string {
	return strings.TrimSpace(server.Must(`SELECT count(*) FROM registrations WHERE phone = '+49 30 90'`))
}

// Without a lock, or with one that other processes do not know, a phone number is
// registered twice.
func TestTwice(t *testing.T) {
	for _, guard := range []string{"none", "mutex"} {
		clean(t)
		a, b := registration(t, guard), registration(t, guard)
		a.Expect("+49 30 90 is free.")
		b.Expect("+49 30 90 is free.")
		a.Enter()
		a.Expect("Registered for user")
		b.Enter()
		b.Expect("Registered for user")
		if got := registrations(); got != "2" {
			t.Errorf("%s: the phone number is registered %s times; want the story's 2", guard, got)
		}
	}
}

func TestLock(t *testing.T) {
	clean(t)
	a := registration(t, "lock")
	a.Expect("+49 30 90 is free.")
	b := registration(t, "lock")
	awaitLine(t)
	b.Silent()
	a.Enter()
	a.Expect("Registered for user")
	b.Expect("Sorry: +49 30 90 is registered by user")
	if got := registrations(); got != "1" {
		t.Errorf("the phone number is registered %s times", got)
	}
}

// The transaction of one who dies ends, and with it the lock.
func TestKilled(t *testing.T) {
	clean(t)
	a := registration(t, "lock")
	a.Expect("+49 30 90 is free.")
	b := registration(t, "lock")
	awaitLine(t)
	a.Kill()
	b.Expect("+49 30 90 is free.")
	b.Enter()
	b.Expect("Registered for user")
	if got := registrations(); got != "1" {
		t.Errorf("the phone number is registered %s times", got)
	}
}

// Of five at once, one gets the number.
func TestCrowd(t *testing.T) {
	clean(t)
	var all []*terminaltest.Terminal
	for range 5 {
		term := registration(t, "lock")
		term.Enter()
		all = append(all, term)
	}
	registered := 0
	for _, term := range all {
		if term.Either("+49 30 90 is free.", "Sorry: +49 30 90 is registered by user") {
			term.Expect("Registered for user")
			registered++
		}
	}
	if got := registrations(); registered != 1 || got != "1" {
		t.Errorf("%d registered, and there are %s rows; want 1", registered, got)
	}
}

// awaitLine waits until a transaction waits for the lock of another.
func awaitLine(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	const waiting = `SELECT count(*) FROM pg_locks JOIN pg_database ON database = pg_database.oid
		WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`
	for strings.TrimSpace(server.Must(waiting)) == "0" {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("nobody waits")
		}
	}
}

func TestWrongGuard(t *testing.T) {
	registration(t, "hope").Expect("-guard hope is none of none, mutex and lock")
}
