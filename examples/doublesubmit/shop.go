package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/once"
)

// A shop takes orders.
type shop struct {
	orders *orders
	work   func(context.Context) error
}

func (s shop) handler(locks *holdfast.Locker, records once.Records, wait time.Duration) http.Handler {
	guard := httplock.Once(locks, records, &httplock.OnceOptions{
		Key:   httplock.Required(httplock.Form("token"), "Load the form again."),
		Scope: httplock.Anyone, // the token of a foreign form cannot be guessed
		Lock:  []holdfast.LockOption{holdfast.Wait(wait)},
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.form)
	mux.Handle("POST /orders", guard(http.HandlerFunc(s.order)))
	return mux
}

var page = template.Must(template.New("form").Parse(`<!DOCTYPE html>
<title>Order</title>
<form method="post" action="/orders">
<input type="hidden" name="token" value="{{.}}">
<input name="item" value="tea">
<button>Click me twice</button>
</form>
`))

// form gives every shown form a token of its own.
func (s shop) form(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	page.Execute(w, rand.Text())
}

// order runs once per form. If order is paused for longer than its lease, and a second
// server does the work meanwhile, the database refuses the token.
func (s shop) order(w http.ResponseWriter, r *http.Request) {
	lock, _ := holdfast.FromContext(r.Context())
	key, token := lock.Key(), lock.Fence()
	err := s.work(r.Context())
	var id int64
	if err == nil {
		id, err = s.orders.add(r.Context(), key, token, r.FormValue("item"))
	}
	// Rather than what came of it. After a pause the lock knows before the context does.
	if lost := cmp.Or(lock.Err(), context.Cause(r.Context())); err != nil && lost != nil {
		err = lost
	}
	if err != nil {
		httplock.ProblemOf(err).ServeHTTP(w, r)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d\n", id)
}
