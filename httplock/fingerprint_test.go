package httplock_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// A key that was used on one route is refused on another, though both handlers see the
// same path, or run in another way under one guard.
func TestOnceTellsRoutesApart(t *testing.T) {
	served := ""
	note := func(route string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served += route + r.URL.Path + " "
			io.WriteString(w, route)
		})
	}
	for name, site := range map[string]func(guard func(http.Handler) http.Handler) http.Handler{
		"StripPrefix": func(guard func(http.Handler) http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/charge/", http.StripPrefix("/charge", guard(note("charge"))))
			mux.Handle("/refund/", http.StripPrefix("/refund", guard(note("refund"))))
			return mux
		},
		// A batch serves several requests that one request of a client contains.
		"batch": func(guard func(http.Handler) http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("POST /charge/", guard(note("charge")))
			mux.Handle("POST /refund/", guard(note("refund")))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner := r.Clone(r.Context())
				inner.RequestURI = "/batch"
				mux.ServeHTTP(w, inner)
			})
		},
		"made by hand": func(guard func(http.Handler) http.Handler) http.Handler {
			h := guard(note(""))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.RequestURI = ""
				h.ServeHTTP(w, r)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			served = ""
			h := site(newOnce(t, httplock.OnceOptions{}))
			ask := func(target string) *httptest.ResponseRecorder { return serve(h, submitTo(target, "a", "tea")) }
			first := ask("/charge/1")
			wantProblem(t, ask("/refund/1"), http.StatusUnprocessableEntity, "used before, with a different request")
			again := ask("/charge/1")
			if first.Code != http.StatusOK || again.Header().Get(httplock.ReplayedHeader) == "" || again.Body.String() != first.Body.String() || strings.Count(served, " ") != 1 {
				t.Errorf("served %q; a repeat was answered with %d %s", served, again.Code, again.Body)
			}
		})
	}
}

// Requests are the same, or not, however a client writes down where they go.
func TestOnceComparesTargets(t *testing.T) {
	const first = "POST /charge?n=1 HTTP/1.1\r\nHost: Shop.example\r\n"
	for _, c := range []struct {
		repeat string
		same   bool
	}{
		{"POST /charge?n=1 HTTP/1.1\r\nHost: shop.example\r\n", true},
		{"POST /charge?n=1 HTTP/1.1\r\nHost: shop.example:8443\r\n", true}, // another server of the shop
		{"POST http://shop.example/charge?n=1 HTTP/1.1\r\nHost: shop.example\r\n", true},
		{"POST http://shop.example/charge?n=1 HTTP/1.1\r\nHost: ignored.example\r\n", true},
		{"POST /charge?n=1 HTTP/1.1\r\nHost: other.example\r\n", false},
		{"POST http://other.example/charge?n=1 HTTP/1.1\r\nHost: shop.example\r\n", false},
		{"POST /charge?n=2 HTTP/1.1\r\nHost: shop.example\r\n", false},
		{"POST /charge HTTP/1.1\r\nHost: shop.example\r\n", false},
		{"POST /charge/?n=1 HTTP/1.1\r\nHost: shop.example\r\n", false},
		{"POST //charge?n=1 HTTP/1.1\r\nHost: shop.example\r\n", false},
		{"PUT /charge?n=1 HTTP/1.1\r\nHost: shop.example\r\n", false},
	} {
		server := httptest.NewServer(httplock.Once(newLocks(t, memlock.New()), new(once.Memory), &httplock.OnceOptions{Scope: httplock.Anyone})(created))
		for i, head := range []string{first, c.repeat} {
			response := send(t, server, head+"Idempotency-Key: \"a\"\r\nConnection: close\r\nContent-Length: 3\r\n\r\ntea")
			replayed := response.Header.Get(httplock.ReplayedHeader) == "true"
			if i == 0 && response.StatusCode != http.StatusCreated ||
				i == 1 && c.same && !replayed || i == 1 && !c.same && response.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%q was answered with %d, replayed %v", head, response.StatusCode, replayed)
			}
		}
		server.Close()
	}
}

// send sends the bytes of a request and returns the head of the response.
func send(t *testing.T, server *httptest.Server, request string) *http.Response {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, request)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}
