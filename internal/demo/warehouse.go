package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// warehouse serves a shop to the server processes.
func warehouse(s *shop) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stock", func(w http.ResponseWriter, r *http.Request) {
		left, _, err := s.look(r.FormValue("item"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		json.NewEncoder(w).Encode(left)
	})
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch err := s.save(r.FormValue("item"), o); {
		case errors.Is(err, errStale):
			w.WriteHeader(http.StatusPreconditionFailed)
		case err != nil:
			http.Error(w, err.Error(), http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	return mux
}

// A counter gives a server process access to the item on sale.
type counter struct{ warehouse, item string }

func (c counter) at(path string) string {
	return c.warehouse + path + "?item=" + url.QueryEscape(c.item)
}

// stock returns the stock: the first step of a sale.
func (c counter) stock(ctx context.Context) (left int, err error) {
	reply, err := call(ctx, http.MethodGet, c.at("/stock"), nil)
	if err != nil {
		return 0, fmt.Errorf("stock: %w", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("stock: the warehouse says %s", reply.Status)
	}
	err = json.NewDecoder(reply.Body).Decode(&left)
	return left, err
}

// save writes the order: the last step of a sale.
func (c counter) save(ctx context.Context, o order) error {
	reply, err := call(ctx, http.MethodPost, c.at("/order"), o)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	defer reply.Body.Close()
	switch reply.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%w (token %d)", errStale, o.Token)
	}
	return fmt.Errorf("order: the warehouse says %s", reply.Status)
}
