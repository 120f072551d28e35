package http

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Chi routes by chi. The middleware belongs to the route (With): one that all routes
// Use runs before the path's values are known.
func Chi(shop Shop, guards Guards) http.Handler {
	router := chi.NewRouter()
	router.With(guards.Account).Post("/accounts/{id}/withdraw", shop.withdraw)
	router.With(guards.Order).Post("/orders", shop.order)
	return router
}
