package redislock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/httplock"
)

// A request that finds its lock free costs two commands, and nothing else at the
// server that a lock and an unlock do not cost.
func TestHTTPRequestCostsOneLock(t *testing.T) {
	t.Parallel()
	server := servers.StartRedis(t)
	locks := openLocker(t, server.URL())
	h := httplock.Middleware(locks, httplock.Header("Order"), nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	const requests = 20
	cost := func(do func()) map[string]int {
		do() // so that scripts are loaded
		before := calls(server)
		for range requests {
			do()
		}
		after := calls(server)
		for name, n := range before {
			if after[name] -= n; after[name] == 0 {
				delete(after, name)
			}
		}
		delete(after, "info") // our own
		delete(after, "ping") // of the client, once in a while
		return after
	}
	plain := cost(func() {
		lock, err := locks.Lock(t.Context(), "header/Order/7")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	})
	served := cost(func() {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header.Set("Order", "7")
		if h.ServeHTTP(w, r); w.Code != http.StatusCreated {
			t.Errorf("answered with %d %s", w.Code, w.Body)
		}
	})
	for name, n := range served {
		if plain[name] != n {
			t.Errorf("%d requests ran %s %d times, as many locks %d times", requests, name, n, plain[name])
		}
	}
	if sent := served["evalsha"] + served["eval"] + served["fcall"]; sent != 2*requests {
		t.Errorf("%d requests sent %d scripts, want 2 each: %v", requests, sent, served)
	}
}
