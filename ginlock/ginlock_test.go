package ginlock_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ginlock"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// newOnce returns a guard that serves each Idempotency-Key once.
func newOnce(t *testing.T) func(http.Handler) http.Handler {
	return httplock.Once(newLocks(t), new(once.Memory), &httplock.OnceOptions{Scope: httplock.Anyone})
}

func newLocks(t *testing.T) *holdfast.Locker {
	locks := must.Get(holdfast.New(memlock.New(), nil))
	t.Cleanup(func() { locks.Close() })
	return locks
}

// post sends a request with an Idempotency-Key to a server of the engine.
func post(t *testing.T, engine *gin.Engine, path string) (response *http.Response, body string) {
	t.Helper()
	server := httptest.NewServer(engine)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader("tea"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(httplock.IdempotencyHeader, `"a"`)
	response, err = server.Client().Transport.RoundTrip(r) // which follows no redirect
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// A request that is refused reaches no handler, and what stands around the guard sees
// the refusal.
func TestRefusedRequestIsAborted(t *testing.T) {
	locks := newLocks(t)
	engine, calls, seen := gin.New(), 0, 0
	engine.Use(func(c *gin.Context) {
		before := c.Request
		c.Next()
		if seen = c.Writer.Status(); c.Request != before {
			t.Error("the request of the guard is left behind")
		}
	})
	account := ginlock.Wrap(httplock.Locked(locks, httplock.PathValue("id"), nil))
	engine.POST("/accounts/:id", account, func(c *gin.Context) {
		calls++
		if lock, ok := holdfast.FromContext(c.Request.Context()); !ok || lock.Key() != "path/id/7" {
			t.Errorf("the handler's context carries %v", lock)
		}
		c.Next()
	}, func(c *gin.Context) { c.String(http.StatusCreated, "done") })
	lock, err := locks.TryLock(t.Context(), "path/id/7")
	if err != nil {
		t.Fatal(err)
	}
	response, body := post(t, engine, "/accounts/7")
	if response.StatusCode != http.StatusConflict || seen != http.StatusConflict || calls != 0 || !strings.HasPrefix(body, "{") || !strings.HasSuffix(body, "}") {
		t.Errorf("while the lock is held: %d %s, %d outside; %d calls", response.StatusCode, body, seen, calls)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a request gives its lock back
		if response, body := post(t, engine, "/accounts/7"); response.StatusCode != http.StatusCreated || body != "done" || seen != http.StatusCreated {
			t.Errorf("when it is free: %d %s, %d outside", response.StatusCode, body, seen)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

// Under Once, a handler of gin answers once, however it does so, and repeats get its
// response.
func TestOnce(t *testing.T) {
	for name, c := range map[string]struct {
		handler gin.HandlerFunc
		status  int
		body    string
		again   bool // it is not remembered
	}{
		"JSON":     {handler: func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"order": 1}) }, status: 201, body: `{"order":1}`},
		"text":     {handler: func(c *gin.Context) { c.String(http.StatusOK, "charged") }, status: 200, body: "charged"},
		"nothing":  {handler: func(*gin.Context) {}, status: 200},
		"a status": {handler: func(c *gin.Context) { c.Status(http.StatusAccepted) }, status: 202},
		"204":      {handler: func(c *gin.Context) { c.JSON(http.StatusNoContent, nil) }, status: 204},
		"redirect": {handler: func(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/orders/1") }, status: 303},
		"abort":    {handler: func(c *gin.Context) { c.AbortWithStatus(http.StatusNotFound) }, status: 404},
		"the last status before a body": {handler: func(c *gin.Context) {
			c.Status(http.StatusAccepted)
			c.Writer.WriteHeader(-1)
			c.Status(http.StatusCreated)
			c.Writer.WriteString("1")
			c.Status(http.StatusTeapot)
			if !c.Writer.Written() || c.Writer.Status() != http.StatusCreated || c.Writer.Size() != 1 {
				t.Errorf("written %v, status %d, size %d", c.Writer.Written(), c.Writer.Status(), c.Writer.Size())
			}
		}, status: 201, body: "1"},
		"a stream": {handler: func(c *gin.Context) {
			left := 3
			c.Stream(func(w io.Writer) bool {
				io.WriteString(w, "x")
				left--
				return left > 0
			})
		}, status: 200, body: "xxx"},
		"an error and a status": {handler: func(c *gin.Context) {
			c.Error(errors.New("for the log"))
			c.Status(http.StatusOK)
		}, status: 200},
		"an error":            {handler: func(c *gin.Context) { c.Error(errors.New("declined")) }, status: 500, again: true},
		"abort with an error": {handler: func(c *gin.Context) { c.AbortWithError(http.StatusBadGateway, io.EOF) }, status: 502, again: true},
		"panic":               {handler: func(*gin.Context) { panic("broken") }, status: 500, again: true},
		"panic after a write": {handler: func(c *gin.Context) { c.String(http.StatusCreated, "half"); panic("broken") }, status: 500, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			engine := gin.New()
			engine.Use(gin.RecoveryWithWriter(io.Discard))
			engine.POST("/orders", ginlock.Wrap(newOnce(t)), func(g *gin.Context) {
				calls++
				g.Header("Location", "/orders/1")
				c.handler(g)
			})
			for i := range 3 {
				response, body := post(t, engine, "/orders")
				replayed := response.Header.Get(httplock.ReplayedHeader) == "true"
				if response.StatusCode != c.status || body != c.body || replayed != (i > 0 && !c.again) || !c.again && response.Header.Get("Location") != "/orders/1" {
					t.Errorf("request %d: %d %v %q", i, response.StatusCode, response.Header, body)
				}
			}
			if want := map[bool]int{false: 1, true: 3}[c.again]; calls != want {
				t.Errorf("%d calls, want %d", calls, want)
			}
		})
	}
}

// A middleware around the guard can answer the errors that a handler leaves behind.
func TestErrorsAnsweredOutside(t *testing.T) {
	engine, calls := gin.New(), 0
	engine.Use(func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 && !c.Writer.Written() {
			c.JSON(http.StatusUnprocessableEntity, gin.H{"error": c.Errors.Last().Error()})
		}
	})
	engine.POST("/orders", ginlock.Wrap(newOnce(t)), func(c *gin.Context) {
		calls++
		c.Error(errors.New("declined"))
	})
	for range 2 {
		response, body := post(t, engine, "/orders")
		if response.StatusCode != http.StatusUnprocessableEntity || body != `{"error":"declined"}` || response.Header.Get(httplock.ReplayedHeader) != "" {
			t.Errorf("answered with %d %v %s", response.StatusCode, response.Header, body)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

// A path without a route stays 404 if the guard stands around every route.
func TestUnknownRoute(t *testing.T) {
	engine := gin.New()
	engine.Use(ginlock.Wrap(newOnce(t)))
	for range 2 {
		if response, body := post(t, engine, "/unknown"); response.StatusCode != http.StatusNotFound || body != "404 page not found" {
			t.Errorf("answered with %d %s", response.StatusCode, body)
		}
	}
}

// A handler under Middleware has the writer of gin, and can flush.
func TestStream(t *testing.T) {
	engine, end := gin.New(), make(chan struct{})
	engine.GET("/events/:id", ginlock.Wrap(httplock.Locked(newLocks(t), httplock.PathValue("id"), nil)), func(c *gin.Context) {
		c.SSEvent("message", "first")
		c.Writer.Flush()
		select {
		case <-end:
		case <-c.Request.Context().Done():
		}
	})
	server := httptest.NewServer(engine)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events/7", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); line != "event:message\n" {
		t.Errorf("read %q, %v while the handler runs", line, err)
	}
	close(end)
}

// A handler under Once has what the ResponseWriter of Once has: deadlines, but no
// flushing and no hijacking.
func TestResponseControllerUnderOnce(t *testing.T) {
	engine := gin.New()
	engine.POST("/orders", ginlock.Wrap(newOnce(t)), func(c *gin.Context) {
		control := http.NewResponseController(c.Writer)
		if err := control.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		if _, _, err := control.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
		if err := control.Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("flush: %v", err)
		}
		c.Writer.Flush() // does nothing
	})
	if response, _ := post(t, engine, "/orders"); response.StatusCode != http.StatusOK {
		t.Errorf("answered with %d", response.StatusCode)
	}
}
