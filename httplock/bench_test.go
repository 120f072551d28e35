package httplock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
)

// BenchmarkMiddleware serves one request over and over, over a memory store, with
// and without a lock: what is beyond "without" is what the middleware costs.
func BenchmarkMiddleware(b *testing.B) {
	locks := holdfast.New(memlock.New(), nil)
	defer locks.Close()
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	key := httplock.Join(httplock.Header("Order"), httplock.Route)
	for name, handler := range map[string]http.Handler{
		"without": ok,
		"with":    httplock.Middleware(locks, key, nil)(ok),
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/orders", nil)
			r.Header.Set("Order", "7")
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context()) // as net/http does
				handler.ServeHTTP(w, r.WithContext(ctx))
				cancel()
			}
		})
	}
}
