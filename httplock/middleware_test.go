package httplock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// order is the key of the requests of these tests.
func order(r *http.Request) (string, error) { return r.Header.Get("Order"), nil }

func newLocks(t testing.TB, store driver.Store) *holdfast.Locker {
	locks := must.Get(holdfast.New(store, nil))
	t.Cleanup(func() { locks.Close() })
	return locks
}

func newRequest(order string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	if order != "" {
		r.Header.Set("Order", order)
	}
	return r
}

// serve lets a handler answer.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// wantProblem checks an answer of this package.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, detail string) {
	t.Helper()
	var body struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Errorf("the body %q is no JSON: %v", w.Body, err)
	}
	if w.Code != status || body.Status != status || body.Title != http.StatusText(status) || !strings.Contains(body.Detail, detail) ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("answered with %d, %+v, %v; want %d and %q", w.Code, body, w.Header(), status, detail)
	}
}

// A busy is a handler that works until it is told to end.
type busy struct {
	begun chan context.Context
	end   chan struct{}
}

func newBusy() busy { return busy{make(chan context.Context, 100), make(chan struct{})} }

func (b busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.begun <- r.Context()
	<-b.end
	w.WriteHeader(http.StatusCreated)
}

func TestOneRequestPerKeyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		var inside, served atomic.Int32
		work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if inside.Add(1) != 1 {
				t.Error("two requests of one key are served at the same time")
			}
			if lock, ok := holdfast.FromContext(r.Context()); !ok || lock.Key() != "7" {
				t.Error("the context does not carry the lock")
			}
			time.Sleep(time.Second)
			inside.Add(-1)
			served.Add(1)
		})
		var all sync.WaitGroup
		for range 2 { // servers
			opts := &httplock.Options{Lock: []holdfast.LockOption{holdfast.Wait(time.Minute)}}
			h := httplock.Locked(newLocks(t, shared{store}), order, opts)(work)
			for range 20 {
				all.Go(func() { serve(h, newRequest("7")) })
			}
		}
		all.Wait()
		if served.Load() != 40 {
			t.Errorf("%d of 40 requests were served", served.Load())
		}
	})
}

// shared is a store that several Lockers use, so that none closes it.
type shared struct{ driver.Store }

func (shared) Close() error { return nil }

func TestHeldIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newBusy()
		h := httplock.Locked(newLocks(t, memlock.New()), order, nil)(work)
		var first *httptest.ResponseRecorder
		var all sync.WaitGroup
		all.Go(func() { first = serve(h, newRequest("7")) })
		<-work.begun
		time.Sleep(3 * time.Second) // of the TTL of 15
		second := serve(h, newRequest("7"))
		wantProblem(t, second, http.StatusConflict, "Another request")
		if retry := second.Header().Get("Retry-After"); retry != "12" {
			t.Errorf("Retry-After is %q, want 12: what the holder has left, rounded up", retry)
		}
		time.Sleep(time.Hour) // the lock is renewed
		wantProblem(t, serve(h, newRequest("7")), http.StatusConflict, "Another request")
		for _, other := range []string{"8", ""} {
			all.Go(func() { serve(h, newRequest(other)) })
			<-work.begun
		}
		close(work.end)
		all.Wait()
		if first.Code != http.StatusCreated {
			t.Errorf("the first was answered with %d", first.Code)
		}
		if w := serve(h, newRequest("7")); w.Code != http.StatusCreated {
			t.Errorf("after the first has ended: %d", w.Code)
		}
	})
}

func TestWaitHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newBusy()
		opts := &httplock.Options{Lock: []holdfast.LockOption{holdfast.Wait(2 * time.Second)}}
		h := httplock.Locked(newLocks(t, memlock.New()), order, opts)(work)
		var all sync.WaitGroup
		all.Go(func() { serve(h, newRequest("7")) })
		<-work.begun
		began := time.Now()
		second := serve(h, newRequest("7"))
		wantProblem(t, second, http.StatusConflict, "Another request")
		if retry := second.Header().Get("Retry-After"); retry != "13" {
			t.Errorf("Retry-After is %q, want 13: what the holder has left, rounded up", retry)
		}
		if waited := time.Since(began); waited != 2*time.Second {
			t.Errorf("waited for %v, want 2s", waited)
		}
		// A client that leaves while it waits.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantProblem(t, serve(h, newRequest("7").WithContext(ctx)), http.StatusConflict, "Another request")
		close(work.end)
		all.Wait()
		if w := serve(h, newRequest("7")); w.Code != http.StatusCreated || len(work.begun) != 1 {
			t.Errorf("then: %d, and %d more have begun", w.Code, len(work.begun)-1)
		}
	})
}

// A time limit around the middleware ends the context, and the key is taken until the
// handler has returned.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newBusy()
		guarded := httplock.Locked(newLocks(t, memlock.New()), order, nil)(work)
		if w := serve(http.TimeoutHandler(guarded, time.Second, "too slow"), newRequest("7")); w.Code != http.StatusServiceUnavailable {
			t.Errorf("answered with %d", w.Code)
		}
		if ctx := <-work.begun; ctx.Err() == nil {
			t.Error("the context goes on")
		}
		wantProblem(t, serve(guarded, newRequest("7")), http.StatusConflict, "Another request")
		close(work.end)
		synctest.Wait()
		if w := serve(guarded, newRequest("7")); w.Code != http.StatusCreated {
			t.Errorf("after the handler has returned: %d", w.Code)
		}
	})
}

func TestLostLockEndsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newLocks(t, memlock.New())
		for want, lose := range map[holdfast.LossReason]func(context.Context){
			holdfast.LossMaxHold: func(context.Context) {},
			holdfast.LossBroken: func(ctx context.Context) {
				lock, _ := holdfast.FromContext(ctx)
				if err := locks.Break(t.Context(), "7", lock.ID()); err != nil {
					t.Error(err)
				}
			},
		} {
			var lost *holdfast.LostError
			hang := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				lose(r.Context())
				<-r.Context().Done()
				if !errors.As(context.Cause(r.Context()), &lost) || lost.Reason != want {
					t.Errorf("the context ended with %v, want %s", context.Cause(r.Context()), want)
				}
			})
			var log bytes.Buffer
			opts := &httplock.Options{
				Lock:   []holdfast.LockOption{holdfast.MaxHold(time.Minute), holdfast.Wait(time.Minute)},
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}
			if serve(httplock.Locked(locks, order, opts)(hang), newRequest("7")); lost == nil {
				t.Errorf("%s: the handler was not called", want)
			}
			if !strings.Contains(log.String(), "has lost its lock") || !strings.Contains(log.String(), string(want)) {
				t.Errorf("%s: the log has %s", want, log.String())
			}
		}
	})
}

// An outage is a store that does not answer.
type outage struct{ driver.Store }

func (outage) Acquire(context.Context, driver.Ask) (driver.Grant, error) {
	return driver.Grant{}, errors.New("connection to secret.example refused")
}

func TestStoreIsUnreachable(t *testing.T) {
	var log bytes.Buffer
	served := 0
	work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := holdfast.FromContext(r.Context()); ok {
			t.Error("the context carries a lock")
		}
		served++
	})
	locks := newLocks(t, outage{memlock.New()})
	opts := httplock.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	w := serve(httplock.Locked(locks, order, &opts)(work), newRequest("7"))
	wantProblem(t, w, http.StatusServiceUnavailable, "at the moment")
	if strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret.example") || served != 0 {
		t.Errorf("the client was told %s, the log %s, and %d were served", w.Body, log.String(), served)
	}
	log.Reset()
	opts.FailOpen = true
	h := httplock.Locked(locks, order, &opts)(work)
	if w := serve(h, newRequest("7")); w.Code != http.StatusOK || served != 1 || !strings.Contains(log.String(), "without its lock") {
		t.Errorf("FailOpen: %d, %d were served, the log has %s", w.Code, served, log.String())
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	log.Reset()
	if serve(h, newRequest("7").WithContext(gone)); served != 1 {
		t.Error("FailOpen runs what nobody waits for")
	}
	if log.Len() > 0 {
		t.Errorf("the log has what is no fault of the server: %s", log.String())
	}
}

// FailOpen is for stores, not for programs, nor for their end.
func TestMisuse(t *testing.T) {
	locks := newLocks(t, memlock.New())
	work := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	var log bytes.Buffer
	opts := &httplock.Options{FailOpen: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	bad := *opts
	bad.Lock = []holdfast.LockOption{holdfast.TTL(time.Nanosecond)}
	for want, h := range map[string]http.Handler{
		"needs a Locker":       httplock.Locked(nil, order, opts)(work),
		"and a KeyFunc":        httplock.Locked(locks, nil, opts)(work),
		"TTL is 1ns":           httplock.Locked(locks, order, &bad)(work),
		"holds this lock":      httplock.Locked(locks, order, opts)(httplock.Locked(locks, order, opts)(work)),
		"no such user, secret": httplock.Locked(locks, func(*http.Request) (string, error) { return "", errors.New("no such user, secret") }, opts)(work),
	} {
		log.Reset()
		w := serve(h, newRequest("7"))
		wantProblem(t, w, http.StatusInternalServerError, "not set up")
		if !strings.Contains(log.String(), want) || strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: told the client %s and the log %s", want, w.Body, log.String())
		}
	}
	locks.Close()
	wantProblem(t, serve(httplock.Locked(locks, order, opts)(work), newRequest("7")), http.StatusServiceUnavailable, "at the moment")
}

func TestResponder(t *testing.T) {
	locks := newLocks(t, memlock.New())
	opts := &httplock.Options{Respond: func(w http.ResponseWriter, r *http.Request, p *httplock.Problem) {
		if !errors.Is(p, holdfast.ErrHeld) || p.RetryAfter < time.Second {
			t.Errorf("%v with %v", p, p.RetryAfter)
		}
		http.Error(w, "busy: "+r.URL.Path, http.StatusTeapot)
	}}
	inner := httplock.Locked(newLocks(t, memlock.New()), order, nil)(http.NotFoundHandler())
	h := httplock.Locked(locks, order, opts)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if second := serve(httplock.Locked(locks, order, opts)(inner), newRequest("7")); second.Code != http.StatusTeapot {
			t.Errorf("answered with %d %s", second.Code, second.Body)
		}
		inner.ServeHTTP(w, r)
	}))
	if w := serve(h, newRequest("7")); w.Code != http.StatusNotFound {
		t.Errorf("another Locker refuses: %d", w.Code)
	}
}

func TestOverhead(t *testing.T) {
	h := httplock.Locked(newLocks(t, memlock.New()), order, nil)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := httptest.NewRecorder(), newRequest("7")
	allocations := func(h http.Handler) float64 {
		return testing.AllocsPerRun(1000, func() {
			ctx, cancel := context.WithCancel(t.Context())
			h.ServeHTTP(w, r.WithContext(ctx))
			cancel()
		})
	}
	if n := allocations(h) - allocations(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})); n > 10 {
		t.Errorf("a request takes %v allocations more than without the middleware, want 10 at most", n)
	}
}

// A silent store is no fault of the client, who is told to come back.
func TestSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := must.Get(holdfast.New(silentStore{memlock.New()}, nil))
		defer locks.Close()
		var log strings.Builder
		opts := &httplock.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		w := serve(httplock.Locked(locks, order, opts)(http.NotFoundHandler()), newRequest("7"))
		wantProblem(t, w, http.StatusServiceUnavailable, "at the moment")
		if !strings.Contains(log.String(), "not answered") {
			t.Errorf("logged %q, want that the store has not answered", log.String())
		}
	})
}

type silentStore struct{ *memlock.Store }

func (silentStore) Acquire(ctx context.Context, _ driver.Ask) (driver.Grant, error) {
	<-ctx.Done()
	return driver.Grant{}, ctx.Err()
}
