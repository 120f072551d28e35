package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

var routers = map[string]func(Shop, Guards) http.Handler{"standard": Standard, "chi": Chi, "echo": Echo, "gin": Gin}

// each runs a test with every router, in a server of its own.
func each(t *testing.T, shop Shop, test func(t *testing.T, ask asker)) {
	for name, router := range routers {
		t.Run(name, func(t *testing.T) { run(t, router, shop, test) })
	}
}

func run(t *testing.T, router func(Shop, Guards) http.Handler, shop Shop, test func(t *testing.T, ask asker)) {
	locks := must.Get(holdfast.New(memlock.New(), nil))
	defer locks.Close()
	server := httptest.NewServer(Authenticate(router(shop, NewGuards(locks, new(once.Memory)))))
	defer server.Close()
	test(t, func(path string, header ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader("tea"))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(body)
	})
}

// An asker sends a request and returns the response with its body.
type asker func(path string, header ...string) (*http.Response, string)

func TestOneRequestPerAccount(t *testing.T) {
	begun, end := make(chan context.Context), make(chan struct{})
	shop := Shop{Withdraw: func(ctx context.Context, account string) error {
		if account == "fails" {
			return errors.New("no such account")
		}
		begun <- ctx
		<-end
		return nil
	}}
	each(t, shop, func(t *testing.T, ask asker) {
		status := make(chan int)
		for _, account := range []string{"7", "8"} { // at the same time
			go func() {
				r, _ := ask("/accounts/" + account + "/withdraw")
				status <- r.StatusCode
			}()
			if lock, ok := holdfast.FromContext(<-begun); !ok || lock.Key() != "path/id/"+account {
				t.Errorf("account %s: the context carries %v", account, lock)
			}
		}
		r, body := ask("/accounts/7/withdraw")
		if r.StatusCode != http.StatusConflict || r.Header.Get("Retry-After") == "" || !strings.Contains(body, `"status":409`) {
			t.Errorf("the second was answered with %d %v %s", r.StatusCode, r.Header, body)
		}
		for range 2 {
			end <- struct{}{}
			if code := <-status; code != http.StatusNoContent {
				t.Errorf("a first one was answered with %d", code)
			}
		}
		for range 2 { // an error gives the lock back
			if r, _ := ask("/accounts/fails/withdraw"); r.StatusCode != http.StatusInternalServerError {
				t.Errorf("an error was answered with %d", r.StatusCode)
			}
		}
	})
}

func TestOrdersAreTakenOnce(t *testing.T) {
	orders := 0
	shop := Shop{Order: func(_ context.Context, what string) (string, error) {
		orders++
		if orders == 1 {
			return "", errors.New("out of stock")
		}
		return fmt.Sprint(what, orders), nil
	}}
	each(t, shop, func(t *testing.T, ask asker) {
		orders = 0
		ann := []string{"User", "ann", httplock.IdempotencyHeader, `"a"`}
		if r, body := ask("/orders", ann...); r.StatusCode != http.StatusInternalServerError || r.Header.Get(httplock.ReplayedHeader) != "" {
			t.Errorf("an error was answered with %d %v %s", r.StatusCode, r.Header, body)
		}
		for i := range 3 { // the error was not remembered
			r, body := ask("/orders", ann...)
			if r.StatusCode != http.StatusCreated || body != "tea2" || r.Header.Get("Location") != "/orders/tea2" || (r.Header.Get(httplock.ReplayedHeader) == "true") != (i > 0) {
				t.Errorf("order %d was answered with %d %v %s", i, r.StatusCode, r.Header, body)
			}
		}
		if r, body := ask("/orders", "User", "bob", httplock.IdempotencyHeader, `"a"`); r.StatusCode != http.StatusCreated || body != "tea3" {
			t.Errorf("another user was answered with %d %s", r.StatusCode, body)
		}
		for _, missing := range [][]string{ann[:2], ann[2:]} {
			if r, body := ask("/orders", missing...); r.StatusCode != http.StatusBadRequest || r.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("with %v only: %d %s", missing, r.StatusCode, body)
			}
		}
	})
}

// recovering answers panics outside of the guards, as the middleware of most sites does.
var recovering = map[string]func(http.Handler) http.Handler{
	"chi": middleware.Recoverer,
	"echo": func(h http.Handler) http.Handler {
		h.(*echo.Echo).Use(func(next echo.HandlerFunc) echo.HandlerFunc { // as middleware.Recover
			return func(c echo.Context) error {
				defer func() {
					if p := recover(); p != nil {
						c.Error(fmt.Errorf("panic: %v", p))
					}
				}()
				return next(c)
			}
		})
		return h
	},
}

// A handler that panics has not had its effect, and a client is told so.
func TestPanicsAreAnsweredOutside(t *testing.T) {
	for name, around := range recovering {
		orders := 0
		shop := Shop{Order: func(_ context.Context, what string) (string, error) {
			if orders++; orders == 1 {
				panic("out of stock")
			}
			return fmt.Sprint(what, orders), nil
		}}
		t.Run(name, func(t *testing.T) {
			run(t, func(s Shop, g Guards) http.Handler { return around(routers[name](s, g)) }, shop, func(t *testing.T, ask asker) {
				ann := []string{"User", "ann", httplock.IdempotencyHeader, `"a"`}
				if r, body := ask("/orders", ann...); r.StatusCode != http.StatusInternalServerError || r.Header.Get(httplock.ReplayedHeader) != "" {
					t.Errorf("a panic was answered with %d %v %s", r.StatusCode, r.Header, body)
				}
				for i := range 2 {
					r, body := ask("/orders", ann...)
					if r.StatusCode != http.StatusCreated || body != "tea2" || (r.Header.Get(httplock.ReplayedHeader) == "true") != (i > 0) {
						t.Errorf("order %d was answered with %d %v %s", i, r.StatusCode, r.Header, body)
					}
				}
			})
		})
	}
}

// In chi, a middleware of all routes runs before the path is known. Without Required it
// would let requests through unguarded.
func TestChiPathValues(t *testing.T) {
	locks := must.Get(holdfast.New(memlock.New(), nil))
	defer locks.Close()
	guard := httplock.Locked(locks, httplock.Required(httplock.PathValue("id"), "No account."), nil)
	withdraw := func(w http.ResponseWriter, r *http.Request) {
		if lock, ok := holdfast.FromContext(r.Context()); !ok || lock.Key() != "path/id/7" {
			t.Errorf("the context carries %v", lock)
		}
	}
	for want, router := range map[int]func(chi.Router){
		http.StatusBadRequest: func(router chi.Router) {
			router.Use(guard)
			router.Post("/accounts/{id}/withdraw", withdraw)
		},
		http.StatusOK: func(router chi.Router) {
			router.Route("/accounts/{id}", func(account chi.Router) {
				account.Use(guard)
				account.Post("/withdraw", withdraw)
			})
		},
	} {
		mux, w := chi.NewRouter(), httptest.NewRecorder()
		router(mux)
		if mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/accounts/7/withdraw", nil)); w.Code != want {
			t.Errorf("answered with %d %s, want %d", w.Code, w.Body, want)
		}
	}
}
