package httplock_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
)

// endings are what ends the context of a handler after a second.
var endings = map[string]struct {
	lock    []holdfast.LockOption
	around  func(http.Handler) http.Handler
	patient bool // the client
}{
	"client leaves": {},
	"time limit": {
		around:  func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Second, "too slow") },
		patient: true,
	},
	"lock is lost": {lock: []holdfast.LockOption{holdfast.MaxHold(time.Second)}, patient: true},
}

// A handler that returns has finished, whatever became of its context meanwhile: its
// response is remembered, also the empty one of status 200 that net/http would send. A
// handler that has not finished says so by a status that is not kept, or panics.
func TestOnceOfAHandlerThatReturns(t *testing.T) {
	for name, c := range map[string]struct {
		status int // of a repeat; 0 if it is served anew
		reply  http.HandlerFunc
	}{
		"nothing":       {http.StatusOK, func(http.ResponseWriter, *http.Request) {}},
		"only a header": {http.StatusOK, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", "/1") }},
		"only a hint":   {http.StatusOK, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }},
		"only a status": {http.StatusAccepted, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }},
		"204":           {http.StatusNoContent, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		"only a body":   {http.StatusOK, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "charged") }},
		"an empty body": {http.StatusOK, func(w http.ResponseWriter, _ *http.Request) { w.Write(nil) }},
		"status and body": {http.StatusCreated, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, "1")
		}},
		"404":   {http.StatusNotFound, http.NotFound},
		"499":   {0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(499) }},
		"503":   {0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
		"panic": {0, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"panic after a write": {0, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}},
	} {
		for ending, e := range endings {
			t.Run(name+", "+ending, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					effects := 0
					h := newOnce(t, httplock.OnceOptions{Lock: e.lock})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if effects++; effects == 1 {
							<-r.Context().Done()
							time.Sleep(time.Second) // the effect ends later
						}
						c.reply(w, r)
					}))
					first := h
					if e.around != nil {
						first = e.around(h)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if !e.patient {
						time.AfterFunc(time.Second, cancel)
					}
					func() {
						defer func() { recover() }()
						serve(first, submit("a", "tea").WithContext(ctx))
					}()
					time.Sleep(time.Minute) // the handler has returned, and a lost lock is free
					defer func() {
						if recover(); effects != 1 && c.status != 0 || effects != 2 && c.status == 0 {
							t.Errorf("%d effects", effects)
						}
					}()
					w := serve(h, submit("a", "tea"))
					if c.status != 0 && (w.Code != c.status || w.Header().Get(httplock.ReplayedHeader) == "") {
						t.Errorf("the repeat was answered with %d %v", w.Code, w.Header())
					}
				})
			})
		}
	}
}

// A client that gives up and sends its request again, in a real server, has its effect
// once and gets the response of the first.
func TestOnceOfAClientThatGivesUp(t *testing.T) {
	for name, reply := range map[string]func(w http.ResponseWriter){
		"200": func(http.ResponseWriter) {},
		"204": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"201": func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); io.WriteString(w, "charged") },
		"large": func(w http.ResponseWriter) {
			for range 3 { // more than is held back, of which the last part finds nobody
				io.WriteString(w, strings.Repeat("x", 1<<20))
			}
		},
	} {
		for _, protocol := range protocols {
			t.Run(protocol+" "+name, func(t *testing.T) {
				t.Parallel()
				begun, charges := make(chan struct{}, 2), 0
				opts := httplock.OnceOptions{Lock: []holdfast.LockOption{holdfast.Wait(time.Minute)}}
				server := listen(t, protocol, newOnce(t, opts)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					charges++
					if begun <- struct{}{}; charges == 1 {
						<-r.Context().Done() // the client has gone
					}
					reply(w)
				})))
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				go func() {
					<-begun
					giveUp()
				}()
				if response, _, err := charge(ctx, server.Client(), server.URL); err == nil {
					t.Fatalf("the first request was answered with %d", response.StatusCode)
				}
				response, body, err := charge(t.Context(), server.Client(), server.URL)
				if err != nil {
					t.Fatal(err)
				}
				want, wantBody := name, ""
				switch name {
				case "201":
					wantBody = "charged"
				case "large": // is not kept, only that it was done
					want, wantBody = "409", body
				}
				replayed := response.Header.Get(httplock.ReplayedHeader) == "true" || name == "large"
				if charges != 1 || response.Status[:3] != want || body != wantBody || !replayed {
					t.Errorf("%d charges; the repeat was answered with %s %v %q", charges, response.Status, response.Header, body)
				}
			})
		}
	}
}

// charge sends a request with a key.
func charge(ctx context.Context, client *http.Client, url string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charge", strings.NewReader("tea"))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set(httplock.IdempotencyHeader, `"a"`)
	response, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}
