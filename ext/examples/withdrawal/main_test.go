package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/examples/guarding"
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

// open opens the account with 100.
func open(t *testing.T) {
	t.Helper()
	if err := run(t.Context(), server.URL(), "", 0, 100); err != nil {
		t.Fatal(err)
	}
}

func withdrawal(t *testing.T, guard string, amount int) *terminaltest.Terminal {
	return terminaltest.Start(t, "-db", server.URL(), "-guard", guard, "-amount", fmt.Sprint(amount))
}

func balance() string {
	return strings.TrimSpace(server.Must(`SELECT balance FROM accounts WHERE id = 1`))
}

// Without a lock, or with one that other processes do not know, two get 160 of 100.
func TestOverdraft(t *testing.T) {
	for _, guard := range []string{"none", "mutex"} {
		open(t)
		a, b := withdrawal(t, guard, 80), withdrawal(t, guard, 80)
		a.Expect("There is enough for 80.")
		b.Expect("There is enough for 80.")
		a.Enter()
		a.Expect("Paid out 80.")
		b.Enter()
		b.Expect("Paid out 80.")
		if got := balance(); got != "20" {
			t.Errorf("%s: the balance is %s; want the books to say 20", guard, got)
		}
	}
}

func TestLock(t *testing.T) {
	open(t)
	a := withdrawal(t, "lock", 80)
	a.Expect("There is enough for 80.")
	b := withdrawal(t, "lock", 80)
	awaitLine(t, 1)
	b.Silent()
	a.Enter()
	a.Expect("Paid out 80. The balance is 20.")
	b.Expect("There is not enough")
	if got := balance(); got != "20" {
		t.Errorf("the balance is %s, want 20", got)
	}
}

// Who dies before it pays keeps nobody waiting for long, and nothing is paid twice.
func TestKilled(t *testing.T) {
	open(t)
	a := withdrawal(t, "lock", 80)
	a.Expect("There is enough for 80.")
	b := withdrawal(t, "lock", 80)
	awaitLine(t, 1)
	a.Kill()
	b.Expect("There is enough for 80.")
	b.Enter()
	b.Expect("Paid out 80. The balance is 20.")
}

// Of five at once, three can have 30 of 100.
func TestCrowd(t *testing.T) {
	open(t)
	var all []*terminaltest.Terminal
	for range 5 {
		term := withdrawal(t, "lock", 30)
		term.Enter()
		all = append(all, term)
	}
	paid := 0
	for _, term := range all {
		if term.Either("There is enough for 30.", "There is not enough") {
			term.Expect("Paid out 30.")
			paid++
		}
	}
	if got := balance(); paid != 3 || got != "10" {
		t.Errorf("%d were paid, the balance is %s; want 3 and 10", paid, got)
	}
}

// awaitLine waits until so many stand in line for the account.
func awaitLine(t *testing.T, n int) {
	t.Helper()
	bank, err := guarding.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer bank.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		holders, err := bank.Locks.Holders(ctx, fmt.Sprintf("account/%d", account))
		if err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for _, h := range holders {
			if h.Waiting {
				waiting++
			}
		}
		if waiting == n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d wait, want %d", waiting, n)
		}
	}
}

func TestWrongGuard(t *testing.T) {
	withdrawal(t, "hope", 1).Expect("-guard hope is none of none, mutex and lock")
}
