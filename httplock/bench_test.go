package httplock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
)

// BenchmarkLocked serves one request over and over, over a memory store: what is
// beyond "none" is what the middleware costs. The handler takes the context as it is,
// and net/http makes one that can be cancelled for each request.
func BenchmarkLocked(b *testing.B) {
	locks := newLocks(b, memlock.New())
	done := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	header := httplock.Header("Order")
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{
		{"none", done},
		{"function", httplock.Locked(locks, order, nil)(done)},
		{"header", httplock.Locked(locks, header, nil)(done)},
		{"joined", httplock.Locked(locks, httplock.Join(header, httplock.Route), nil)(done)},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, r := httptest.NewRecorder(), newRequest("7")
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				c.handler.ServeHTTP(w, r.WithContext(ctx))
				cancel()
			}
		})
	}
}
