package http

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
)

// Echo routes by echo.
func Echo(shop Shop, guards Guards) http.Handler {
	e := echo.New()
	e.POST("/accounts/:id/withdraw", func(c echo.Context) error {
		if err := shop.Withdraw(c.Request().Context(), c.Param("id")); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	}, wrapEcho(guards.Account))
	e.POST("/orders", func(c echo.Context) error {
		what, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return echo.NewHTTPError(http.StatusBadRequest, err.Error())
		}
		id, err := shop.Order(c.Request().Context(), string(what))
		if err != nil {
			return err
		}
		c.Response().Header().Set("Location", "/orders/"+id)
		return c.String(http.StatusCreated, id)
	}, wrapEcho(guards.Order))
	return e
}

// wrapEcho makes a middleware of echo of a guard. With echo.WrapMiddleware, echo would
// answer errors and panics after the guard, in the response that the guard has finished:
// the client gets an empty 200, which Once remembers for an error.
func wrapEcho(guard func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request, response := c.Request(), c.Response()
			for _, name := range c.ParamNames() {
				request.SetPathValue(name, c.Param(name))
			}
			guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { // after a panic too, for middleware.Recover
					c.SetRequest(request)
					c.SetResponse(response)
				}()
				c.SetRequest(r)
				c.SetResponse(echo.NewResponse(w, c.Echo()))
				if err := next(c); err != nil {
					c.Error(err) // inside of the guard
				}
			})).ServeHTTP(response, request)
			return nil
		}
	}
}
