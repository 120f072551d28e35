package httplock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
)

var created = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })

func fencedRequest(key, token string) *http.Request {
	r := newRequest("")
	if key != "" {
		r.Header.Set(httplock.KeyHeader, key)
	}
	if token != "" {
		r.Header.Set(httplock.FenceHeader, token)
	}
	return r
}

func TestFenced(t *testing.T) {
	var fences fence.Memory
	h := httplock.Fenced(&fences, nil, nil)(created)
	twice := fencedRequest("a", "7")
	twice.Header.Add(httplock.FenceHeader, "9")
	for _, c := range []struct {
		r      *http.Request
		status int
		detail string
	}{
		{fencedRequest("a", "7"), http.StatusCreated, ""},
		{fencedRequest("a", "7"), http.StatusCreated, ""},
		{fencedRequest("a", "9"), http.StatusCreated, ""},
		{fencedRequest("a", "7"), http.StatusPreconditionFailed, "has a new holder"},
		{fencedRequest("a%2Fb", "7"), http.StatusCreated, ""},
		{fencedRequest("", ""), http.StatusPreconditionRequired, "send Holdfast-Key and Holdfast-Fence"},
		{fencedRequest("a", ""), http.StatusBadRequest, "once each"},
		{fencedRequest("", "7"), http.StatusBadRequest, "once each"},
		{twice, http.StatusBadRequest, "once each"},
		{fencedRequest("%zz", "7"), http.StatusBadRequest, "percent-encoded"},
		{fencedRequest("%ff", "7"), http.StatusBadRequest, "percent-encoded"},
		{fencedRequest(strings.Repeat("k", 513), "7"), http.StatusBadRequest, "percent-encoded"},
		{fencedRequest("a", "0"), http.StatusBadRequest, "a number from 1"},
		{fencedRequest("a", "-9"), http.StatusBadRequest, "a number from 1"},
		{fencedRequest("a", "9.0"), http.StatusBadRequest, "a number from 1"},
		{fencedRequest("a", "9223372036854775808"), http.StatusBadRequest, "a number from 1"},
	} {
		w := serve(h, c.r)
		if c.status == http.StatusCreated {
			if w.Code != c.status {
				t.Errorf("%v: %d %s", c.r.Header, w.Code, w.Body)
			}
			continue
		}
		wantProblem(t, w, c.status, c.detail)
	}
}

// brokenFences are what a database that does not answer makes of them.
type brokenFences struct{}

func (brokenFences) Check(context.Context, string, uint64, func() error) error {
	return errors.New("connection to secret.example refused")
}

func TestFencedTellsTheLog(t *testing.T) {
	var log bytes.Buffer
	opts := &httplock.FencedOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	noKey := func(*http.Request) (string, error) { return "", errors.New("no such order") }
	for want, c := range map[string]struct {
		fences httplock.Fences
		key    httplock.KeyFunc
		status int
		detail string
	}{
		"needs Fences":   {nil, nil, http.StatusInternalServerError, "not set up"},
		"no such order":  {new(fence.Memory), noKey, http.StatusInternalServerError, "not set up"},
		"secret.example": {brokenFences{}, nil, http.StatusServiceUnavailable, "at the moment"},
	} {
		log.Reset()
		w := serve(httplock.Fenced(c.fences, c.key, opts)(created), fencedRequest("a", "7"))
		wantProblem(t, w, c.status, c.detail)
		if !strings.Contains(log.String(), want) || strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: told the client %s and the log %s", want, w.Body, log.String())
		}
	}
}

func TestFencedByTheKeyOfTheRequest(t *testing.T) {
	var fences fence.Memory
	h := httplock.Fenced(&fences, order, nil)(created)
	ask := func(order, key, token string) *httptest.ResponseRecorder {
		r := fencedRequest(key, token)
		r.Header.Set("Order", order)
		return serve(h, r)
	}
	if w := ask("7", "7", "1"); w.Code != http.StatusCreated {
		t.Errorf("the right key: %d %s", w.Code, w.Body)
	}
	if w := ask("", "", ""); w.Code != http.StatusCreated {
		t.Errorf("no key, no token: %d %s", w.Code, w.Body)
	}
	wantProblem(t, ask("7", "", ""), http.StatusPreconditionRequired, "needs a lock")
	wantProblem(t, ask("7", "8", "9"), http.StatusPreconditionRequired, "something else")
	broken := httplock.Fenced(&fences, httplock.Required(order, "Send an Order header."), nil)(created)
	wantProblem(t, serve(broken, newRequest("")), http.StatusBadRequest, "Send an Order header.")
}

// A handler of a former holder ends before that of the next begins.
func TestFencedWaitsForFormerHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fences fence.Memory
		work := newBusy()
		h := httplock.Fenced(&fences, nil, nil)(work)
		go serve(h, fencedRequest("a", "7"))
		<-work.begun
		next := make(chan int)
		go func() { next <- serve(h, fencedRequest("a", "9")).Code }()
		synctest.Wait()
		if len(work.begun) != 0 {
			t.Error("two holders write at the same time")
		}
		wantProblem(t, serve(h, fencedRequest("a", "8")), http.StatusPreconditionFailed, "new holder")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantProblem(t, serve(h, fencedRequest("a", "10").WithContext(ctx)), http.StatusServiceUnavailable, "")
		close(work.end)
		if code := <-next; code != http.StatusPreconditionFailed {
			t.Errorf("a token that was overtaken while it waited: %d, want 412", code)
		}
	})
}

// A sender is a client that sends fencing tokens to a server that checks them.
type sender struct {
	t         *testing.T
	client    *http.Client
	url       string
	fences    fence.Memory
	elsewhere []http.Header // of requests that were redirected to another origin
}

func newSender(t *testing.T) *sender {
	s := &sender{t: t}
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s.elsewhere = append(s.elsewhere, r.Header) }))
	t.Cleanup(foreign.Close)
	mux := http.NewServeMux()
	mux.Handle("POST /write", httplock.Fenced(&s.fences, nil, nil)(created))
	mux.Handle("POST /moved", http.RedirectHandler("/write", http.StatusTemporaryRedirect))
	mux.Handle("POST /away", http.RedirectHandler(foreign.URL, http.StatusTemporaryRedirect))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	transport, err := httplock.NewTransport(nil, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.client, s.url = &http.Client{Transport: transport}, server.URL
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

func (s *sender) send(ctx context.Context, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader("body"))
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := s.client.Do(r)
	if len(r.Header) != 0 {
		s.t.Errorf("the caller's request has %v", r.Header)
	}
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestTransport(t *testing.T) {
	s := newSender(t)
	lock, err := newLocks(t, memlock.New()).Lock(t.Context(), "account/ä 7")
	if err != nil {
		t.Fatal(err)
	}
	ctx := lock.Context(t.Context())
	want := func(ctx context.Context, path string, status int) {
		t.Helper()
		if got, err := s.send(ctx, path); got != status || err != nil {
			t.Errorf("%s: %d, %v; want %d", path, got, err, status)
		}
	}
	want(ctx, "/write", http.StatusCreated)
	want(ctx, "/moved", http.StatusCreated)
	want(t.Context(), "/write", http.StatusPreconditionRequired)
	want(ctx, "/away", http.StatusOK)
	if len(s.elsewhere) != 1 || s.elsewhere[0].Get(httplock.KeyHeader)+s.elsewhere[0].Get(httplock.FenceHeader) != "" {
		t.Errorf("the redirect told another origin %v", s.elsewhere)
	}
	if err := s.fences.Check(t.Context(), "account/ä 7", lock.Fence()+1, func() error { return nil }); err != nil {
		t.Error(err)
	}
	want(ctx, "/write", http.StatusPreconditionFailed)
}

func TestTransportWithoutToken(t *testing.T) {
	s := newSender(t)
	lock, err := newLocks(t, memlock.New()).Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(lock.Context(t.Context()))
	lock.Unlock()
	if _, err := s.send(ctx, "/write"); !errors.Is(err, holdfast.ErrReleased) {
		t.Errorf("with a lock that has ended: %v", err)
	}
	tokenless, err := newLocks(t, noTokens{memlock.New()}).Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.send(tokenless.Context(t.Context()), "/write"); !errors.Is(err, holdfast.ErrNotFenced) {
		t.Errorf("with a store without tokens: %v", err)
	}
}

// noTokens is a store that has none.
type noTokens struct{ driver.Store }

func (s noTokens) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, a)
	g.Fence = 0
	return g, err
}

func TestOrigins(t *testing.T) {
	seen := make(chan string, 1)
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		seen <- r.Header.Get(httplock.KeyHeader)
		return &http.Response{Body: http.NoBody}, nil
	})
	transport, err := httplock.NewTransport(base, "https://API.example.com", "http://other.example:8080")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := newLocks(t, memlock.New()).Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"https://api.example.com/x":       "k",
		"https://api.example.com:443/":    "k",
		"http://other.example:8080/":      "k",
		"http://api.example.com/":         "",
		"https://api.example.com:8443/":   "",
		"https://api.example.com.evil/":   "",
		"https://evil/?api.example.com":   "",
		"http://other.example/":           "",
		"https://api.example.com@evil/":   "",
		"https://sub.api.example.com/":    "",
		"http://other.example:8080.evil/": "-",
	} {
		r, err := http.NewRequestWithContext(lock.Context(t.Context()), http.MethodGet, url, nil)
		if err != nil {
			if want != "-" {
				t.Errorf("%s: %v", url, err)
			}
			continue
		}
		if _, err := transport.RoundTrip(r); err != nil {
			t.Error(err)
		}
		if got := <-seen; got != want {
			t.Errorf("%s: sent the key %q, want %q", url, got, want)
		}
	}
	for _, bad := range []string{"", "api.example.com", "https://", "ftp://api.example.com", "https://api.example.com/", "https://u@api.example.com", "https://api.example.com?x", "://"} {
		if _, err := httplock.NewTransport(nil, bad); err == nil || !strings.Contains(err.Error(), "must be http:// or https://") {
			t.Errorf("origin %q: %v", bad, err)
		}
	}
	if _, err := httplock.NewTransport(nil); err == nil {
		t.Error("a Transport without origins")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
	}
	return f(r)
}
