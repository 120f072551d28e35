// Package http guards the routes of a small shop with httplock, in four routers: the
// standard mux, chi, echo and gin. Withdrawals from one account come one at a time, and an
// order is taken once, however often a client sends the order.
package http

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/once"
)

// A Shop is the work of the routes. The contexts end when the locks are lost.
type Shop struct {
	Withdraw func(ctx context.Context, account string) error
	Order    func(ctx context.Context, what string) (id string, err error)
}

// Guards are the middleware of the routes.
type Guards struct {
	Account func(http.Handler) http.Handler // one request per account at a time
	Order   func(http.Handler) http.Handler // an Idempotency-Key of a user once
}

// NewGuards returns the guards of the servers that share locks and records.
func NewGuards(locks *holdfast.Locker, records once.Records) Guards {
	wait := []holdfast.LockOption{holdfast.Wait(5 * time.Second)}
	return Guards{
		Account: httplock.Locked(locks, httplock.PathValue("id"), nil),
		Order:   httplock.Once(locks, records, &httplock.OnceOptions{Scope: httplock.User(userOf), Lock: wait}),
	}
}

type userKey struct{}

func userOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

// Authenticate goes around a router. In production it looks at a session.
func Authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), userKey{}, r.Header.Get("User"))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
