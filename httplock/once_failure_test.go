package httplock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// unreliable are records that fail when they are told to.
type unreliable struct {
	once.Memory
	load, finish error
	kept         []byte // in place of what was given
}

func (u *unreliable) Load(ctx context.Context, key string) (once.Record, error) {
	if u.load != nil {
		return once.Record{}, u.load
	}
	return u.Memory.Load(ctx, key)
}

func (u *unreliable) Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	if u.finish != nil {
		return u.finish
	}
	if u.kept != nil {
		result = u.kept
	}
	return u.Memory.Finish(ctx, key, token, result, keep)
}

func TestOnceWhenRecordsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		opts := &httplock.OnceOptions{Scope: httplock.Anyone, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		records := &unreliable{load: errors.New("secret.example is down")}
		shop := new(shop)
		h := httplock.Once(newLocks(t, memlock.New()), records, opts)(shop)
		w := serve(h, submit("a", "tea"))
		wantProblem(t, w, http.StatusServiceUnavailable, "at the moment")
		if shop.orders != 0 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret.example") {
			t.Errorf("%d orders; told the client %s and the log %s", shop.orders, w.Body, log.String())
		}
		records.load, records.finish = nil, errors.New("disk is full")
		wantOrder(t, serve(h, submit("a", "tea")), 1, "tea", false)
		if !strings.Contains(log.String(), "not remembered") || !strings.Contains(log.String(), "disk is full") {
			t.Errorf("the log has %s", log.String())
		}
		records.finish = nil
		wantOrder(t, serve(h, submit("a", "tea")), 2, "tea", false)
		wantOrder(t, serve(h, submit("a", "tea")), 2, "tea", true)
		records.kept = []byte("of another program")
		serve(h, submit("b", "tea"))
		wantProblem(t, serve(h, submit("b", "tea")), http.StatusInternalServerError, "not set up")
	})
}

func TestOnceMisuse(t *testing.T) {
	locks, records := newLocks(t, memlock.New()), new(once.Memory)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	work := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	anyone := httplock.OnceOptions{Scope: httplock.Anyone, Logger: logger}
	with := func(change func(*httplock.OnceOptions)) *httplock.OnceOptions {
		opts := anyone
		change(&opts)
		return &opts
	}
	for want, h := range map[string]http.Handler{
		"Scope must name":      httplock.Once(locks, records, with(func(o *httplock.OnceOptions) { o.Scope = nil }))(work),
		"needs a Locker":       httplock.Once(nil, records, &anyone)(work),
		"and Records":          httplock.Once(locks, nil, &anyone)(work),
		"MaxRequest is -1":     httplock.Once(locks, records, with(func(o *httplock.OnceOptions) { o.MaxRequest = -1 }))(work),
		"from 1 to 983040":     httplock.Once(locks, records, with(func(o *httplock.OnceOptions) { o.MaxResponse = 1 << 20 }))(work),
		"Retention is 1ns":     httplock.Once(locks, records, with(func(o *httplock.OnceOptions) { o.Retention = 1 }))(work),
		"exclude each other":   httplock.Once(locks, records, with(func(o *httplock.OnceOptions) { o.Lock = []holdfast.LockOption{holdfast.Shared()} }))(work),
		"has no fencing token": httplock.Once(newLocks(t, noTokens{memlock.New()}), records, &anyone)(work),
	} {
		log.Reset()
		w := serve(h, submit("a", "tea"))
		wantProblem(t, w, http.StatusInternalServerError, "not set up")
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s: the log has %s", want, log.String())
		}
	}
	if w := serve(httplock.Once(locks, records, nil)(work), submit("a", "tea")); w.Code != http.StatusInternalServerError {
		t.Errorf("without options: %d", w.Code)
	}
}

// The extra powers of a ResponseWriter, in a real server.
func TestOnceResponseWriter(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server := listen(t, protocol, newOnce(t, httplock.OnceOptions{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				controls(t, w)
				w.Header().Set("Link", "</style.css>")
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusCreated)
				w.WriteHeader(http.StatusTeapot) // in vain
				io.WriteString(w, "done")
			})))
			for _, replayed := range []string{"", "true"} {
				response, body, hints := askOnce(t, server)
				if body != "done" || response.StatusCode != http.StatusCreated || response.Header.Get(httplock.ReplayedHeader) != replayed ||
					response.ContentLength != 4 || (hints == 1) != (replayed == "") {
					t.Errorf("%d %v %q, %d hints", response.StatusCode, response.Header, body, hints)
				}
			}
		})
	}
}

// controls checks what a handler under Once can do with its connection.
func controls(t *testing.T, w http.ResponseWriter) {
	c := http.NewResponseController(w)
	for name, err := range map[string]error{
		"read deadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
		"write deadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
		"full duplex":    c.EnableFullDuplex(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Flush(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("flush: %v", err)
	}
	if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("hijack: %v", err)
	}
	if _, ok := w.(http.Flusher); ok {
		t.Error("it pretends to flush")
	}
}

// askOnce sends a request with a key. It returns how many hints came before the
// response.
func askOnce(t *testing.T, server *httptest.Server) (response *http.Response, body string, hints int) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("tea"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(httplock.IdempotencyHeader, "a")
	response, err = server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text), hints
}
