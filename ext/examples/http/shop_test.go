package http

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

var routers = map[string]func(Shop, Guards) http.Handler{"standard": Standard, "chi": Chi, "echo": Echo, "gin": Gin}

// each runs a test with every router, in a server of its own.
func each(t *testing.T, shop Shop, test func(t *testing.T, ask asker)) {
	for name, router := range routers {
		t.Run(name, func(t *testing.T) {
			locks := holdfast.New(memlock.New(), nil)
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
		})
	}
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

// A handler of gin under Middleware can flush.
func TestGinStreams(t *testing.T) {
	locks := holdfast.New(memlock.New(), nil)
	defer locks.Close()
	engine, end := gin.New(), make(chan struct{})
	engine.GET("/events/:id", wrapGin(NewGuards(locks, new(once.Memory)).Account), func(c *gin.Context) {
		c.Writer.WriteString("first\n")
		c.Writer.Flush()
		select {
		case <-end:
		case <-c.Request.Context().Done():
		}
	})
	server := httptest.NewServer(engine)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); line != "first\n" {
		t.Errorf("read %q, %v while the handler runs", line, err)
	}
	close(end)
}
