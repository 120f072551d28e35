// Package deposit is an HTTP handler under a lock, and a test to copy: deposit_test.go shows
// how to test such a handler, see docs/testing.md.
package deposit

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
)

// Accounts keeps balances in a database with fencing tokens: both methods refuse a token
// smaller than the largest token of the account so far.
type Accounts interface {
	Balance(ctx context.Context, id string, token uint64) (int, error)
	SetBalance(ctx context.Context, id string, token uint64, balance int) error
}

// A Bank takes deposits.
type Bank struct {
	Locks    *holdfast.Locker
	Accounts Accounts
	Confirm  func(ctx context.Context, id string) error // slow: asks a service
	Logger   *slog.Logger
}

// Handler returns the handler of POST /accounts/{id}/deposit.
func (b *Bank) Handler() http.Handler {
	mux := http.NewServeMux()
	perAccount := httplock.Locked(b.Locks, httplock.PathValue("id"), &httplock.Options{Logger: b.Logger})
	mux.Handle("POST /accounts/{id}/deposit", perAccount(http.HandlerFunc(b.deposit)))
	return mux
}

func (b *Bank) deposit(w http.ResponseWriter, r *http.Request) {
	if err := b.add(r.Context(), r.PathValue("id"), 1); err != nil {
		http.Error(w, "The deposit has failed. Try again.", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// add needs a context with a lock.
func (b *Bank) add(ctx context.Context, id string, amount int) error {
	lock, _ := holdfast.FromContext(ctx)
	token := lock.Fence()
	balance, err := b.Accounts.Balance(ctx, id, token)
	if err != nil {
		return err
	}
	if err := b.Confirm(ctx, id); err != nil {
		return err
	}
	return b.Accounts.SetBalance(ctx, id, token, balance+amount)
}
