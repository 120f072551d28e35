package httplock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// A shop counts its orders.
type shop struct{ orders int }

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.orders++
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", fmt.Sprintf("/orders/%d", s.orders))
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Set-Cookie", "session=secret")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "ordered %s", body)
}

// submit is a request with an idempotency key, "" for none.
func submit(key, body string) *http.Request { return submitTo("/orders?to=home", key, body) }

func submitTo(target, key, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if key != "" {
		r.Header.Set(httplock.IdempotencyHeader, `"`+key+`"`)
	}
	return r
}

// newOnce returns the middleware over new records, for a test that begins with
// these options.
func newOnce(t testing.TB, opts httplock.OnceOptions) func(http.Handler) http.Handler {
	if opts.Scope == nil {
		opts.Scope = httplock.Anyone
	}
	return httplock.Once(newLocks(t, memlock.New()), new(once.Memory), &opts)
}

func wantOrder(t *testing.T, w *httptest.ResponseRecorder, order int, body string, replayed bool) {
	t.Helper()
	h := w.Header()
	if w.Code != http.StatusCreated || w.Body.String() != "ordered "+body || h.Get("Location") != fmt.Sprintf("/orders/%d", order) ||
		h.Get("Content-Type") != "text/plain" || (h.Get(httplock.ReplayedHeader) == "true") != replayed || (h.Get("Set-Cookie") == "") != replayed {
		t.Errorf("answered with %d, %v, %s; want order %d of %s, replayed %v", w.Code, h, w.Body, order, body, replayed)
	}
}

func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := new(shop)
		h := newOnce(t, httplock.OnceOptions{})(shop)
		wantOrder(t, serve(h, submit("a", "tea")), 1, "tea", false)
		for range 3 {
			wantOrder(t, serve(h, submit("a", "tea")), 1, "tea", true)
		}
		bare := submit("", "tea")
		bare.Header.Set(httplock.IdempotencyHeader, "a")
		wantOrder(t, serve(h, bare), 1, "tea", true)
		wantOrder(t, serve(h, submit("b", "tea")), 2, "tea", false)
		wantProblem(t, serve(h, submit("a", "milk")), http.StatusUnprocessableEntity, "used before, with a different request")
		wantProblem(t, serve(h, submitTo("/orders?to=work", "a", "tea")), http.StatusUnprocessableEntity, "used before")
		wantProblem(t, serve(h, submit("", "tea")), http.StatusBadRequest, "Send an Idempotency-Key header.")
		time.Sleep(24*time.Hour + time.Second)
		wantOrder(t, serve(h, submit("a", "milk")), 3, "milk", false)
	})
}

func TestOnceIsScoped(t *testing.T) {
	shop := new(shop)
	h := newOnce(t, httplock.OnceOptions{Scope: httplock.User(userOf)})(shop)
	as := func(user string) *http.Request {
		r := submit("a", "tea")
		return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
	}
	wantOrder(t, serve(h, as("ann")), 1, "tea", false)
	wantOrder(t, serve(h, as("bob")), 2, "tea", false)
	wantOrder(t, serve(h, as("ann")), 1, "tea", true)
	wantProblem(t, serve(h, as("")), http.StatusBadRequest, "whose it is")
}

func TestOnceWhileTheFirstIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, records := newLocks(t, memlock.New()), new(once.Memory)
		opts := httplock.OnceOptions{Scope: httplock.Anyone}
		work := newBusy()
		refusing := httplock.Once(locks, records, &opts)(work)
		opts.Lock = []holdfast.LockOption{holdfast.Wait(time.Minute)}
		waiting := httplock.Once(locks, records, &opts)(work)
		codes := make(chan *httptest.ResponseRecorder, 2)
		go func() { codes <- serve(refusing, submit("a", "tea")) }()
		<-work.begun
		second := serve(refusing, submit("a", "tea"))
		wantProblem(t, second, http.StatusConflict, "is being worked on")
		if second.Header().Get("Retry-After") != "15" {
			t.Errorf("Retry-After is %q", second.Header().Get("Retry-After"))
		}
		wantProblem(t, serve(waiting, submit("a", "milk")), http.StatusUnprocessableEntity, "used before")
		go func() { codes <- serve(waiting, submit("a", "tea")) }()
		synctest.Wait()
		close(work.end)
		first, repeat := <-codes, <-codes
		if first.Code != http.StatusCreated || repeat.Code != http.StatusCreated || len(work.begun) != 0 ||
			first.Header().Get(httplock.ReplayedHeader)+repeat.Header().Get(httplock.ReplayedHeader) != "true" {
			t.Errorf("answered with %d %v and %d %v", first.Code, first.Header(), repeat.Code, repeat.Header())
		}
	})
}

// A caller that has lost its lock cannot change the record of the next caller.
func TestOnceIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		opts := httplock.OnceOptions{
			Lock:   []holdfast.LockOption{holdfast.MaxHold(time.Minute), holdfast.Wait(time.Hour)},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		begun := 0
		h := newOnce(t, opts)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun++
			me := begun
			if me == 1 {
				time.Sleep(2 * time.Minute) // deaf to its context
			}
			fmt.Fprintf(w, "by %d", me)
		}))
		first := make(chan string)
		go func() { first <- serve(h, submit("a", "tea")).Body.String() }()
		synctest.Wait()
		if body := serve(h, submit("a", "tea")).Body.String(); body != "by 2" {
			t.Errorf("the second: %s", body)
		}
		if body := <-first; body != "by 1" || !strings.Contains(log.String(), "not remembered") {
			t.Errorf("the first: %s; the log has %s", body, log.String())
		}
		if w := serve(h, submit("a", "tea")); w.Body.String() != "by 2" || begun != 2 {
			t.Errorf("a repeat: %s; %d have begun", w.Body, begun)
		}
	})
}

func TestOnceKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		opts  httplock.OnceOptions
		kept  bool
		reply http.HandlerFunc
	}{
		"nothing written": {kept: true, reply: func(w http.ResponseWriter, r *http.Request) {}},
		"204":             {kept: true, reply: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		"404":             {kept: true, reply: http.NotFound},
		"500":             {reply: func(w http.ResponseWriter, r *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }},
		"429":             {reply: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }},
		"499":             {reply: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(499) }},
		"Retry-After": {reply: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusConflict)
		}},
		"202 with Retry-After": {kept: true, reply: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1") // to look how far it is
			w.WriteHeader(http.StatusAccepted)
		}},
		"500 by choice": {
			opts:  httplock.OnceOptions{Keep: func(status int, _ http.Header) bool { return status == http.StatusInternalServerError }},
			kept:  true,
			reply: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		},
		"panic": {reply: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			h := newOnce(t, c.opts)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				c.reply(w, r)
			}))
			ask := func() (w *httptest.ResponseRecorder) {
				w = httptest.NewRecorder()
				defer func() { recover() }()
				h.ServeHTTP(w, submit("a", "tea"))
				return w
			}
			first, second := ask(), ask()
			for name := range first.Header() {
				if first.Header().Get(name) != second.Header().Get(name) {
					t.Errorf("%v, then %v", first.Header(), second.Header())
				}
			}
			if first.Code != second.Code || first.Body.String() != second.Body.String() || (calls == 1) != c.kept {
				t.Errorf("%d %s, then %d %s; %d calls", first.Code, first.Body, second.Code, second.Body, calls)
			}
			if name == "panic" && first.Body.Len() > 0 {
				t.Errorf("the client was sent %q before the panic", first.Body)
			}
		})
	}
}

// Headers of a middleware outside are those of each response of its own.
func TestOnceHeaders(t *testing.T) {
	requests := 0
	opts := httplock.OnceOptions{Headers: []string{"x-kept"}}
	once := newOnce(t, opts)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Kept", "1")
		w.Header().Set("X-Other", "1")
		w.Header().Del("X-Removed")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("X-Late", "1")
	}))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("X-Request", fmt.Sprint(requests))
		w.Header().Set("X-Removed", "1")
		once.ServeHTTP(w, r)
	})
	for i, want := range []string{"1,1,1,,", "2,1,,,1"} {
		h := serve(h, submit("a", "tea")).Result().Header
		got := strings.Join([]string{h.Get("X-Request"), h.Get("X-Kept"), h.Get("X-Other"), h.Get("X-Late"), h.Get("X-Removed")}, ",")
		if got != want {
			t.Errorf("response %d has %s, want %s", i+1, got, want)
		}
	}
}

func TestOnceLimits(t *testing.T) {
	var calls int
	var write func(w http.ResponseWriter)
	h := newOnce(t, httplock.OnceOptions{MaxRequest: 10, MaxResponse: 10})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		write(w)
	}))
	wantProblem(t, serve(h, submit("large", "more than ten bytes")), http.StatusRequestEntityTooLarge, "larger than the 10 bytes")
	chunked := submit("large", "more than ten bytes")
	chunked.ContentLength = -1
	wantProblem(t, serve(h, chunked), http.StatusRequestEntityTooLarge, "larger than the 10 bytes")
	if calls != 0 {
		t.Error("a request that is too large was served")
	}
	for key, body := range map[string]string{"fits": "ten bytes.", "large": "more than ten bytes"} {
		calls = 0
		write = func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusAccepted)
			for _, c := range body {
				io.WriteString(w, string(c))
			}
		}
		for i := range 2 {
			w := serve(h, submit(key, "tea"))
			if key == "large" && i == 1 {
				wantProblem(t, w, http.StatusConflict, "done before, with status 202; its response was too large")
				if w.Header().Get("Retry-After") != "" {
					t.Error("a repeat is asked to try again, in vain")
				}
			} else if w.Code != http.StatusAccepted || w.Body.String() != body {
				t.Errorf("%s: %d %s", key, w.Code, w.Body)
			}
		}
		if calls != 1 {
			t.Errorf("%s: %d calls", key, calls)
		}
	}
	write = func(w http.ResponseWriter) { w.Header().Set("Location", strings.Repeat("x", once.MaxResult)) }
	serve(h, submit("headers", "tea"))
	wantProblem(t, serve(h, submit("headers", "tea")), http.StatusConflict, "too large to be kept")
}

func TestOnceOtherRequests(t *testing.T) {
	shop := new(shop)
	h := newOnce(t, httplock.OnceOptions{})(shop)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace} {
		r := submit("a", "")
		r.Method = method
		serve(h, r)
		serve(h, r)
	}
	if shop.orders != 8 {
		t.Errorf("%d of 8 safe requests were served", shop.orders)
	}
	upgrade := submit("a", "")
	upgrade.Header.Set("Upgrade", "websocket")
	wantProblem(t, serve(h, upgrade), http.StatusBadRequest, "switches protocols")
	upgrade.Header.Set("Upgrade", "h2c")
	wantOrder(t, serve(h, upgrade), 9, "", false)
	optional := newOnce(t, httplock.OnceOptions{Key: httplock.IdempotencyKey})(shop)
	wantOrder(t, serve(optional, submit("", "tea")), 10, "tea", false)
	wantOrder(t, serve(optional, submit("", "tea")), 11, "tea", false)
}

// Browsers make a new boundary for each submission of one form.
func TestOnceOfAMultipartForm(t *testing.T) {
	calls := 0
	h := newOnce(t, httplock.OnceOptions{Key: httplock.Form("token")})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		io.WriteString(w, r.FormValue("tea"))
	}))
	for _, tea := range []string{"green", "green", "black"} {
		contentType, body := upload(t, [][2]string{{"token", "7"}, {"tea", tea}})
		w := serve(h, post(contentType, body))
		if tea == "black" {
			wantProblem(t, w, http.StatusUnprocessableEntity, "different request")
		} else if w.Body.String() != tea || calls != 1 {
			t.Errorf("%d %s, %d calls", w.Code, w.Body, calls)
		}
	}
}

func TestOnceFingerprint(t *testing.T) {
	opts := httplock.OnceOptions{Fingerprint: func(r *http.Request, body []byte) string { return strings.Repeat(string(body[:3]), 200) }}
	shop := new(shop)
	h := newOnce(t, opts)(shop)
	wantOrder(t, serve(h, submit("a", "tea 1")), 1, "tea 1", false)
	wantOrder(t, serve(h, submit("a", "tea 2")), 1, "tea 1", true)
	wantProblem(t, serve(h, submit("a", "milk")), http.StatusUnprocessableEntity, "different request")
}

// A caller that has seen a response can repeat the request.
func TestOnceRemembersBeforeItAnswers(t *testing.T) {
	shop := new(shop)
	h := newOnce(t, httplock.OnceOptions{})(shop)
	w := &answered{ResponseRecorder: httptest.NewRecorder()}
	w.then = func() { wantOrder(t, serve(h, submit("a", "tea")), 1, "tea", true) }
	h.ServeHTTP(w, submit("a", "tea"))
	wantOrder(t, w.ResponseRecorder, 1, "tea", false)
	w = &answered{ResponseRecorder: httptest.NewRecorder()}
	fails := newOnce(t, httplock.OnceOptions{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	w.then = func() {
		if again := serve(fails, submit("a", "tea")); again.Code != http.StatusBadGateway {
			t.Errorf("a request that may be served anew: %d", again.Code)
		}
	}
	fails.ServeHTTP(w, submit("a", "tea"))
}

// An answered calls a function when the response begins.
type answered struct {
	*httptest.ResponseRecorder
	then func()
}

func (a *answered) WriteHeader(status int) {
	a.then()
	a.ResponseRecorder.WriteHeader(status)
}
