package httplock_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
)

type userKey struct{}

func userOf(ctx context.Context) string {
	id, _ := ctx.Value(userKey{}).(string)
	return id
}

func TestKeys(t *testing.T) {
	user, route := httplock.User(userOf), httplock.KeyFunc(httplock.Route)
	fixed := func(key string) httplock.KeyFunc {
		return func(*http.Request) (string, error) { return key, nil }
	}
	for _, c := range []struct {
		key  httplock.KeyFunc
		want string
	}{
		{user, "user/ann"},
		{httplock.User(func(context.Context) string { return "" }), ""},
		{httplock.Header("oRDER"), "header/Order/7|8"},
		{httplock.Header("Other"), ""},
		{httplock.PathValue("id"), "path/id/42"},
		{httplock.PathValue("none"), ""},
		{route, "route/POST /accounts/{id}"},
		{httplock.Join(user, route), "user/ann|route/POST /accounts/{id}"},
		{httplock.Join(user, httplock.Header("Other")), ""},
		{httplock.Join(user, httplock.Header("Order")), "user/ann|header/Order/7%7C8"},
		{httplock.Join(fixed("a|b"), fixed("c")), "a%7Cb|c"},
		{httplock.Join(fixed("a"), fixed("b|c")), "a|b%7Cc"},
		{httplock.Join(fixed("a%7Cb"), fixed("c")), "a%257Cb|c"},
		{httplock.Join(httplock.Join(fixed("a"), fixed("b")), fixed("c")), "a%7Cb|c"},
		{httplock.Required(user, "Log in."), "user/ann"},
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /accounts/{id}", func(_ http.ResponseWriter, r *http.Request) {
			if got, err := c.key(r); got != c.want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
		r, _ := http.NewRequestWithContext(context.WithValue(t.Context(), userKey{}, "ann"), http.MethodPost, "/accounts/42", nil)
		r.Header.Set("Order", "7|8")
		serve(mux, r)
	}
	r := newRequest("")
	if got, err := httplock.Route(r); got != "route/POST /orders" || err != nil {
		t.Errorf("without a pattern: %q, %v", got, err)
	}
}

func TestBadKeys(t *testing.T) {
	locks := newLocks(t, memlock.New())
	work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })
	required := httplock.Required(httplock.Header("Order"), "Send an Order header.")
	for want, c := range map[string]struct {
		key   httplock.KeyFunc
		order string
	}{
		"Send an Order header.":       {required, ""},
		"is too long":                 {order, strings.Repeat("k", 513)},
		"or not UTF-8":                {order, "\xff"},
		"Send an Order header. Twice": {httplock.Join(httplock.Route, httplock.Required(order, "Send an Order header. Twice")), ""},
	} {
		wantProblem(t, serve(httplock.Locked(locks, c.key, nil)(work), newRequest(c.order)), http.StatusBadRequest, want)
	}
	if w := serve(httplock.Locked(locks, order, nil)(work), newRequest(strings.Repeat("k", 512))); w.Code != http.StatusCreated {
		t.Errorf("the longest key: %d %s", w.Code, w.Body)
	}
}
