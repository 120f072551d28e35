package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/examples/internal/scenario"
	"github.com/holdfast-go/holdfast/examples/internal/terminal/terminaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// An engine is a server with the account.
type engine struct {
	url func() string
	do  func(statement string) string
}

var (
	postgres *servers.Postgres
	mariadb  *servers.MariaDB
	engines  = map[string]engine{
		"Postgres": {
			url: func() string { return postgres.URL() },
			do:  func(statement string) string { return postgres.Must(statement) },
		},
		"MariaDB": {
			url: func() string { return mariadb.URL() },
			do:  func(statement string) string { return mariadb.Must(statement) },
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

// each runs a test on an account with 100. In the short form, only TestCompare, which has
// every guard, runs on MariaDB.
func each(t *testing.T, test func(t *testing.T, e engine)) {
	for name, e := range engines {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "MariaDB" && t.Name() != "TestCompare/MariaDB" {
				t.Skip("the same on one more engine: make prove")
			}
			play := &scenario.Play{Processes: 1, Goroutines: 1, Requests: 1}
			if err := run(t.Context(), options{db: e.url(), open: 100, play: play}); err != nil {
				t.Fatal(err)
			}
			test(t, e)
		})
	}
}

// ttl is so long that a process on a slow machine keeps its lock.
const ttl = "1m"

func (e engine) start(t *testing.T, guard, ttl string) *terminaltest.Terminal {
	return terminaltest.Start(t, "-db", e.url(), "-guard", guard, "-ttl", ttl, "-amount", "80")
}

func (e engine) want(t *testing.T, balance string) {
	t.Helper()
	if got := strings.TrimSpace(e.do(`SELECT balance FROM accounts WHERE id = 1`)); got != balance {
		t.Errorf("the balance is %s, want %s", got, balance)
	}
}

// Without a lock, or with one that other processes do not know, two get 160 of 100.
func TestOverdraft(t *testing.T) {
	for _, guard := range []string{"none", "mutex"} {
		each(t, func(t *testing.T, e engine) {
			a, b := e.start(t, guard, ttl), e.start(t, guard, ttl)
			a.Expect("There is enough for 80.")
			b.Expect("There is enough for 80.")
			a.Enter()
			a.Expect("Paid out 80.")
			b.Enter()
			b.Expect("Paid out 80.")
			e.want(t, "20")
		})
	}
}

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		a := e.start(t, "lock", ttl)
		a.Expect("There is enough for 80.")
		b := e.start(t, "lock", ttl)
		e.awaitLine(t)
		b.Silent()
		a.Enter()
		a.Expect("Paid out 80. The balance is 20.")
		b.Expect("There is not enough")
		e.want(t, "20")
	})
}

// Both have found enough, and the write of the second finds out.
func TestOptimistic(t *testing.T) {
	for _, guard := range []string{"version", "update"} {
		each(t, func(t *testing.T, e engine) {
			a, b := e.start(t, guard, ttl), e.start(t, guard, ttl)
			a.Expect("There is enough for 80.")
			b.Expect("There is enough for 80.")
			a.Enter()
			a.Expect("Paid out 80. The balance is 20.")
			b.Enter()
			b.Expect("There is not enough")
			e.want(t, "20")
		})
	}
}

// A customer that dies before paying keeps nobody waiting for long, and nothing is paid
// twice.
func TestKilled(t *testing.T) {
	const ttl = "15s" // how long the test takes
	each(t, func(t *testing.T, e engine) {
		t.Parallel()
		a := e.start(t, "lock", ttl)
		a.Expect("There is enough for 80.")
		b := e.start(t, "lock", ttl)
		e.awaitLine(t)
		a.Kill()
		b.Expect("There is enough for 80.")
		b.Enter()
		b.Expect("Paid out 80. The balance is 20.")
	})
}

// awaitLine waits until somebody waits for the lock on the account.
func (e engine) awaitLine(t *testing.T) {
	t.Helper()
	db, err := scenario.Connect(t.Context(), e.url(), "", 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	servers.Until(t, "somebody to wait", func() bool {
		holders := servers.Insist(t, func(ctx context.Context) ([]driver.Holder, error) { return db.Locks.Holders(ctx, accountKey) })
		return slices.ContainsFunc(holders, func(h driver.Holder) bool { return h.Waiting })
	})
}

// Goroutines of several processes withdraw 1 of an account that has enough for three of
// four. How much is paid too much without a guard is luck.
func TestCompare(t *testing.T) {
	processes, requests := 4, 40
	if testing.Short() {
		processes, requests = 2, 10
	}
	all := processes * 4 * requests
	each(t, func(t *testing.T, e engine) {
		table := terminaltest.Table(t, "-db", e.url(), "-compare", "-ttl", ttl, "-processes", fmt.Sprint(processes),
			"-goroutines", "4", "-requests", fmt.Sprint(requests))
		for guard, of := range table {
			right := guard != "none" && guard != "mutex"
			if right && (of["paid too much"] > 0 || of["done"] != all*3/4) || of["refused"] != all-of["done"] {
				t.Errorf("%s: %v", guard, of)
			}
		}
		if len(table) != 6 {
			t.Errorf("%d guards: %v", len(table), table)
		}
	})
}

func TestWrongGuard(t *testing.T) {
	for want, args := range map[string][]string{
		"-guard hope is none of none, mutex, lock, row, version, update": {"-guard", "hope"},
		"-guard unique does not fit: two withdrawals change one row":     {"-guard", "unique"},
		"-guard upsert does not fit: the row of the account is there":    {"-compare", "-guard", "row,upsert"},
		"-guard has several names":                                       {"-guard", "none,lock"},
		"-processes, -goroutines and -requests must be 1 or more":        {"-compare", "-requests", "0"},
		"store": {"-store", "nowhere://localhost"},
	} {
		terminaltest.Start(t, append([]string{"-db", postgres.URL()}, args...)...).Expect(want)
	}
}
