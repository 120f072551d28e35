package deposit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
)

// accounts is a database with one account, as a process of the world reaches it.
type accounts struct {
	p       *locktest.Process
	balance *locktest.FencedRegister[int]
}

func (a accounts) Balance(_ context.Context, _ string, token uint64) (int, error) {
	return a.balance.Read(a.p, token)
}

func (a accounts) SetBalance(_ context.Context, _ string, token uint64, balance int) error {
	return a.balance.Write(a.p, token, balance)
}

// newBank returns a bank that runs in a process of the world. A confirmation takes a second.
func newBank(p *locktest.Process, balance *locktest.FencedRegister[int]) *Bank {
	confirm := func(ctx context.Context, _ string) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
			return nil
		}
	}
	return &Bank{Locks: p.Locker(), Accounts: accounts{p, balance}, Confirm: confirm, Logger: p.Logger()}
}

// post sends a deposit and returns the status.
func post(t *testing.T, bank *Bank) int {
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/accounts/42/deposit", nil)
	w := httptest.NewRecorder()
	bank.Handler().ServeHTTP(w, r)
	return w.Code
}

// The account is in use in another process: 409.
func TestDepositIntoAnAccountInUse(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		bank := newBank(w.Process("web-1"), locktest.NewFencedRegister("balance", 0))
		release := w.HoldElsewhere("path/id/42")
		if status := post(t, bank); status != http.StatusConflict {
			t.Errorf("status %d while the account is in use, want 409", status)
		}
		release()
		if status := post(t, bank); status != http.StatusNoContent {
			t.Errorf("status %d once the account is free, want 204", status)
		}
	})
}

// The lock is lost while the bank asks for a confirmation: nothing is written.
func TestDepositWhoseLockIsLost(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		balance := locktest.NewFencedRegister("balance", 0)
		status := make(chan int)
		go func() { status <- post(t, newBank(w.Process("web-1"), balance)) }()
		synctest.Wait() // the bank asks
		w.Lose("path/id/42")
		if got := <-status; got != http.StatusServiceUnavailable || balance.Value() != 0 {
			t.Errorf("status %d and a balance of %d, want 503 and 0", got, balance.Value())
		}
	})
}

// The lock is unlocked on every path: the world reports each lock that is left.
func TestDepositUnlocks(t *testing.T) {
	confirmations := map[string]func(context.Context, string) error{
		"confirmed": func(context.Context, string) error { return nil },
		"refused":   func(context.Context, string) error { return errors.New("refused") },
		"panics":    func(context.Context, string) error { panic("no answer") },
	}
	for name, confirm := range confirmations {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(t *testing.T, w *locktest.World) {
				bank := newBank(w.Process("web-1"), locktest.NewFencedRegister("balance", 0))
				bank.Confirm = confirm
				defer func() { _ = recover() }() // as net/http does
				post(t, bank)
			})
		})
	}
}

// Three servers take deposits while everything goes wrong: none that was confirmed is lost.
func TestNoDepositIsLost(t *testing.T) {
	locktest.Explore(t, 50, func(t *testing.T, w *locktest.World) {
		balance := locktest.NewFencedRegister("balance", 0)
		var confirmed atomic.Int64
		var all sync.WaitGroup
		for _, name := range []string{"web-1", "web-2", "web-3"} {
			bank := newBank(w.Process(name), balance)
			all.Go(func() {
				for range 5 {
					if post(t, bank) == http.StatusNoContent {
						confirmed.Add(1)
					}
					time.Sleep(time.Second)
				}
			})
		}
		all.Wait()
		if got := balance.Value(); got < int(confirmed.Load()) {
			t.Errorf("the balance is %d after %d confirmed deposits of 1", got, confirmed.Load())
		}
	})
}
