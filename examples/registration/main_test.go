package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/scenario"
	"github.com/holdfast-go/holdfast/examples/internal/terminal/terminaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// An engine is a server with the tables of this program.
type engine struct {
	url     func() string
	do      func(statement string) string
	waiting string // tells how many wait for the lock of another transaction, in its last column
}

var (
	postgres *servers.Postgres
	mariadb  *servers.MariaDB
	engines  = map[string]engine{
		"Postgres": {
			url: func() string { return postgres.URL() },
			do:  func(statement string) string { return postgres.Must(statement) },
			waiting: `SELECT count(*) FROM pg_locks JOIN pg_database ON database = pg_database.oid
				WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`,
		},
		"MariaDB": {
			url: func() string { return mariadb.URL() },
			do:  func(statement string) string { return mariadb.Must(statement) },
			// The table innodb_trx would not do: it stays as it is for those who look
			// at it all the time.
			waiting: `SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'`,
		},
	}
)

func TestMain(m *testing.M) {
	if terminaltest.Inside() {
		main()
		return
	}
	os.Exit(servers.Main(m, func(tb servers.TB) {
		postgres = servers.AnyPostgres(tb, "fsync = off")
		mariadb = servers.AnyMariaDB(tb, "innodb_flush_method = nosync")
	}))
}

// each runs a test on each engine. In the short form, only TestCompare, which has every
// guard, runs on MariaDB.
func each(t *testing.T, test func(t *testing.T, e engine)) {
	for name, e := range engines {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "MariaDB" && t.Name() != "TestCompare/MariaDB" {
				t.Skip("the same on one more engine: make prove")
			}
			play := &scenario.Play{Processes: 1, Goroutines: 1, Requests: 1}
			if err := run(t.Context(), e.url(), "", "", true, play); err != nil {
				t.Fatal(err)
			}
			test(t, e)
		})
	}
}

func (e engine) start(t *testing.T, guard string) *terminaltest.Terminal {
	return terminaltest.Start(t, "-db", e.url(), "-guard", guard, "-phone", "+49 30 90")
}

func (e engine) want(t *testing.T, table, rows string) {
	t.Helper()
	if got := strings.TrimSpace(e.do(`SELECT count(*) FROM ` + table + ` WHERE phone = '+49 30 90'`)); got != rows {
		t.Errorf("the phone number is registered %s times, want %s", got, rows)
	}
}

// Without a lock, or with one that other processes do not know, a phone number is
// registered twice.
func TestTwice(t *testing.T) {
	for _, guard := range []string{"none", "mutex"} {
		each(t, func(t *testing.T, e engine) {
			a, b := e.start(t, guard), e.start(t, guard)
			a.Expect("+49 30 90 is free.")
			b.Expect("+49 30 90 is free.")
			a.Enter()
			a.Expect("Registered for user")
			b.Enter()
			b.Expect("Registered for user")
			e.want(t, openRegistrations, "2")
		})
	}
}

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		a := e.start(t, "lock")
		a.Expect("+49 30 90 is free.")
		b := e.start(t, "lock")
		e.awaitLine(t)
		b.Silent()
		a.Enter()
		a.Expect("Registered for user")
		b.Expect("Sorry: +49 30 90 is registered by user")
		e.want(t, openRegistrations, "1")
	})
}

// The index decides when both have found the number free.
func TestIndex(t *testing.T) {
	for _, guard := range []string{"unique", "upsert"} {
		each(t, func(t *testing.T, e engine) {
			a, b := e.start(t, guard), e.start(t, guard)
			a.Expect("+49 30 90 is free.")
			b.Expect("+49 30 90 is free.")
			a.Enter()
			a.Expect("Registered for user")
			b.Enter()
			b.Expect("Sorry: +49 30 90 is registered by user")
			e.want(t, uniqueRegistrations, "1")
		})
	}
}

// The transaction of one who dies ends, and with it the lock.
func TestKilled(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		a := e.start(t, "lock")
		a.Expect("+49 30 90 is free.")
		b := e.start(t, "lock")
		e.awaitLine(t)
		a.Kill()
		b.Expect("+49 30 90 is free.")
		b.Enter()
		b.Expect("Registered for user")
		e.want(t, openRegistrations, "1")
	})
}

// awaitLine waits until a transaction waits for the lock of another.
func (e engine) awaitLine(t *testing.T) {
	t.Helper()
	servers.Until(t, "a transaction that waits", func() bool {
		row := strings.Fields(e.do(e.waiting))
		if len(row) == 0 {
			t.Fatal("the server does not tell who waits")
		}
		return row[len(row)-1] != "0"
	})
}

// Four goroutines of each of several processes try each phone number. How many are
// registered twice without a guard is luck.
func TestCompare(t *testing.T) {
	processes, phones := 4, 60
	if testing.Short() {
		processes, phones = 2, 10
	}
	each(t, func(t *testing.T, e engine) {
		table := terminaltest.Table(t, "-db", e.url(), "-compare", "-processes", fmt.Sprint(processes),
			"-goroutines", "4", "-requests", fmt.Sprint(phones))
		for guard, of := range table {
			right, twice := guard != "none" && guard != "mutex", of["registered twice"]
			if right && twice > 0 || of["done"] != phones+twice || of["refused"] != processes*4*phones-of["done"] {
				t.Errorf("%s: %v", guard, of)
			}
		}
		if len(table) != 5 {
			t.Errorf("%d guards: %v", len(table), table)
		}
	})
}

func TestWrongGuard(t *testing.T) {
	for want, args := range map[string][]string{
		"-guard hope is none of none, mutex, lock, unique, upsert":            {"-guard", "hope"},
		"-guard row does not fit: a phone number that is free has no row":     {"-guard", "row"},
		"-guard version does not fit: a phone number that is free has no row": {"-compare", "-guard", "lock,version"},
		"-guard has several names":                                            {"-guard", "none,lock"},
		"-processes, -goroutines and -requests must be 1 or more":             {"-compare", "-processes", "0"},
		`-db has the scheme "redis", want postgres, mysql or mariadb`:         {"-db", "redis://localhost"},
		"-db is not a URL": {"-db", "postgres://user:pass word@%zz"},
	} {
		terminaltest.Start(t, append([]string{"-db", postgres.URL()}, args...)...).Expect(want)
	}
}
