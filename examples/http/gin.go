package http

import (
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/ginlock"
)

// Gin routes by gin.
func Gin(shop Shop, guards Guards) http.Handler {
	engine := gin.New()
	engine.POST("/accounts/:id/withdraw", ginlock.Wrap(guards.Account), func(c *gin.Context) {
		if err := shop.Withdraw(c.Request.Context(), c.Param("id")); err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.Status(http.StatusNoContent)
	})
	engine.POST("/orders", ginlock.Wrap(guards.Order), func(c *gin.Context) {
		what, err := io.ReadAll(c.Request.Body)
		if err != nil {
			c.String(http.StatusBadRequest, err.Error())
			return
		}
		id, err := shop.Order(c.Request.Context(), string(what))
		if err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.Header("Location", "/orders/"+id)
		c.String(http.StatusCreated, id)
	})
	return engine
}
