package http

import (
	"io"
	"net/http"
)

// Standard routes by the mux of the standard library.
func Standard(shop Shop, guards Guards) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}/withdraw", guards.Account(http.HandlerFunc(shop.withdraw)))
	mux.Handle("POST /orders", guards.Order(http.HandlerFunc(shop.order)))
	return mux
}

func (s Shop) withdraw(w http.ResponseWriter, r *http.Request) {
	if err := s.Withdraw(r.Context(), r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s Shop) order(w http.ResponseWriter, r *http.Request) {
	what, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, err := s.Order(r.Context(), string(what))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Location", "/orders/"+id)
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, id)
}
