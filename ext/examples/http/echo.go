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
	}, setPathValues, echo.WrapMiddleware(guards.Account), answerErrors)
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
	}, echo.WrapMiddleware(guards.Order), answerErrors)
	return e
}

// setPathValues tells httplock what echo has found in the path.
func setPathValues(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		for _, name := range c.ParamNames() {
			c.Request().SetPathValue(name, c.Param(name))
		}
		return next(c)
	}
}

// answerErrors stands inside the guards. Echo would answer an error outside of them:
// for Once, that would be after an empty response with status 200.
func answerErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}
