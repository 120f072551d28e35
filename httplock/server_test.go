package httplock_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
)

// protocols are what a server of the standard library speaks.
var protocols = []string{"HTTP/1.1", "HTTP/2.0"}

// listen starts a server.
func listen(t *testing.T, protocol string, h http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != protocol {
			t.Errorf("%s instead of %s", r.Proto, protocol)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	if server.EnableHTTP2 = protocol == "HTTP/2.0"; server.EnableHTTP2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	return server
}

// However a request ends, in a real server, its lock is given back.
func TestLockIsGivenBack(t *testing.T) {
	for name, work := range map[string]http.HandlerFunc{
		"return": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "done") },
		"panic":  func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"flush": func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			w.(http.Flusher).Flush()
		},
		"deadline": func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
		},
		"hijack": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				if r.ProtoMajor == 1 {
					t.Error(err)
				}
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		},
		"disconnect": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		for _, protocol := range protocols {
			t.Run(protocol+" "+name, func(t *testing.T) {
				t.Parallel()
				locks := newLocks(t, memlock.New())
				begun := make(chan struct{}, 1)
				server := listen(t, protocol, httplock.Locked(locks, order, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					begun <- struct{}{}
					work(w, r)
				})))
				ctx, cancel := context.WithCancel(t.Context())
				if name == "disconnect" {
					go func() {
						<-begun
						cancel()
					}()
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Order", "7")
				if response, err := server.Client().Do(r); err == nil {
					response.Body.Close()
				}
				cancel()
				waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				lock, err := locks.Lock(waiting, "7")
				if err != nil {
					t.Fatal(err)
				}
				lock.Unlock()
			})
		}
	}
}

// Files of a form that a guarded handler has left on disk are removed with the request.
func TestFilesOfFormsAreRemoved(t *testing.T) {
	for _, protocol := range protocols {
		for name, guard := range map[string]func(http.Handler) http.Handler{
			"middleware": httplock.Locked(newLocks(t, memlock.New()), order, nil),
			"once":       newOnce(t, httplock.OnceOptions{Key: order}),
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				var left string
				server := listen(t, protocol, guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := r.ParseMultipartForm(1); err != nil {
						t.Error(err)
						return
					}
					file, err := r.MultipartForm.File["photo"][0].Open()
					if err != nil {
						t.Error(err)
						return
					}
					defer file.Close()
					left = file.(*os.File).Name()
				})))
				contentType, body := upload(t, [][2]string{{"file photo", strings.Repeat("x", 1<<10)}})
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header = http.Header{"Content-Type": {contentType}, "Order": {"7"}}
				response, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				server.Close() // when the request has ended there, too
				if _, err := os.Stat(left); left == "" || !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the file %q is there still: %v", left, err)
				}
			})
		}
	}
}

// A handler that has hijacked keeps the lock until it returns.
func TestHijackedRequestKeepsItsLock(t *testing.T) {
	locks := newLocks(t, memlock.New())
	server := httptest.NewServer(httplock.Locked(locks, order, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rw.Flush()
		line, _ := bufio.NewReader(rw).ReadString('\n')
		rw.WriteString(line)
		rw.Flush()
	})))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Order": {"7"}, "Connection": {"Upgrade"}, "Upgrade": {"echo"}}
	upgraded, err := server.Client().Do(r)
	if err != nil || upgraded.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", upgraded, err)
	}
	defer upgraded.Body.Close()
	second := r.Clone(r.Context())
	refused, err := server.Client().Do(second)
	if err != nil || refused.StatusCode != http.StatusConflict {
		t.Fatalf("while the first talks: %+v, %v; want 409", refused, err)
	}
	refused.Body.Close()
	conn := upgraded.Body.(io.ReadWriteCloser)
	io.WriteString(conn, "hello\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("read %q, %v", line, err)
	}
	lock, err := locks.Lock(t.Context(), "7")
	if err != nil {
		t.Fatal(err)
	}
	lock.Unlock()
}
