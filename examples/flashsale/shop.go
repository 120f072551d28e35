package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var errSoldOut = errors.New("sold out")

// A guard runs the sale of one item.
type guard func(ctx context.Context, sell func(context.Context) error) error

// guards are the ways to keep two sales apart.
func guards(locks *holdfast.Locker) map[string]guard {
	var mu sync.Mutex // knows nothing of other processes
	return map[string]guard{
		"none": func(ctx context.Context, sell func(context.Context) error) error { return sell(ctx) },
		"mutex": func(ctx context.Context, sell func(context.Context) error) error {
			mu.Lock()
			defer mu.Unlock()
			return sell(ctx)
		},
		"lock": func(ctx context.Context, sell func(context.Context) error) error {
			return locks.Do(ctx, "stock", sell)
		},
	}
}

// A shop is one web server.
type shop struct {
	stock stock
	guard guard
	pay   time.Duration
}

// A sale is the answer to GET /stock.
type sale struct{ Left, Orders int64 }

func (s shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /stock", s.open)
	mux.HandleFunc("GET /stock", s.look)
	mux.HandleFunc("POST /buy", s.buy)
	host, _ := os.Hostname() // a server without a host name still has a process id
	server := fmt.Sprintf("%s:%d", host, os.Getpid())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Sold-By", server)
		mux.ServeHTTP(w, r)
	})
}

// open begins a new sale.
func (s shop) open(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.FormValue("items"))
	if err != nil || n < 0 {
		http.Error(w, fmt.Sprintf("items=%q is no number of items", r.FormValue("items")), http.StatusBadRequest)
		return
	}
	if err := s.stock.offer(r.Context(), n); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// look answers with the stock and the orders.
func (s shop) look(w http.ResponseWriter, r *http.Request) {
	left, err := s.stock.left(r.Context())
	orders, err2 := s.stock.orders(r.Context())
	if err := errors.Join(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	json.NewEncoder(w).Encode(sale{left, orders})
}

// buy sells one item to one buyer, or says that the item is sold out.
func (s shop) buy(w http.ResponseWriter, r *http.Request) {
	err := s.guard(r.Context(), func(ctx context.Context) error { return s.sell(ctx, r.FormValue("buyer")) })
	switch {
	case errors.Is(err, errSoldOut):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusCreated)
	}
}

// sell looks, takes the money, and writes. The stock stays correct as long as no
// second sale writes between the look and the write.
func (s shop) sell(ctx context.Context, buyer string) error {
	left, err := s.stock.left(ctx)
	if err != nil {
		return err
	}
	if left < 1 {
		return errSoldOut
	}
	select {
	case <-time.After(s.pay):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.stock.save(ctx, buyer, left-1)
}
