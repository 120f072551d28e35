package redislock_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A request that finds its lock free costs two commands, and nothing else at the
// server that a lock and an unlock do not cost.
func TestHTTPRequestCostsOneLock(t *testing.T) {
	t.Parallel()
	server := servers.StartRedis(t)
	locks := openLocker(t, server.URL())
	h := httplock.Locked(locks, httplock.Header("Order"), nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	plain := cost(t, server, func() error {
		lock, err := locks.Lock(t.Context(), "header/Order/7")
		if err != nil {
			return err
		}
		return lock.Unlock()
	})
	served := cost(t, server, func() error {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header.Set("Order", "7")
		if h.ServeHTTP(w, r); w.Code != http.StatusCreated {
			return fmt.Errorf("answered with %d %s", w.Code, w.Body)
		}
		return nil
	})
	for name, n := range served {
		if plain[name] != n {
			t.Errorf("%d requests ran %s %d times, as many locks %d times", requests, name, n, plain[name])
		}
	}
	if sent := scripts(served); sent != 2*requests {
		t.Errorf("%d requests sent %d scripts, want 2 each: %v", requests, sent, served)
	}
}

func scripts(ran map[string]int) int { return ran["evalsha"] + ran["eval"] + ran["fcall"] }

// requests are how many cost measures.
const requests = 20

// cost returns which commands the server has run for them, and how often. A slow server
// may have to be asked again, and never costs less: then cost begins again.
func cost(t *testing.T, server *servers.Redis, do func() error) map[string]int {
	t.Helper()
	var last error
	var least map[string]int
	for range 10 {
		last = do() // so that scripts are loaded
		before := calls(server)
		for range requests {
			last = errors.Join(last, do())
		}
		after := calls(server)
		for name, n := range before {
			if after[name] -= n; after[name] == 0 {
				delete(after, name)
			}
		}
		for name := range after {
			switch name, _, _ := strings.Cut(name, "|"); name {
			case "info": // our own
			case "ping": // of the client, once in a while
			case "hello", "client": // of a new connection, after an answer that did not come in time
			default:
				continue
			}
			delete(after, name)
		}
		least = after
		if last == nil && scripts(after) == 2*requests {
			break
		}
	}
	if last != nil {
		t.Fatal(last)
	}
	return least
}
