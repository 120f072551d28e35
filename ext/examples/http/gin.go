package http

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Gin routes by gin.
func Gin(shop Shop, guards Guards) http.Handler {
	engine := gin.New()
	engine.POST("/accounts/:id/withdraw", wrapGin(guards.Account), func(c *gin.Context) {
		if err := shop.Withdraw(c.Request.Context(), c.Param("id")); err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.Status(http.StatusNoContent)
	})
	engine.POST("/orders", wrapGin(guards.Order), func(c *gin.Context) {
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

// wrapGin makes a middleware of gin of one of net/http.
func wrapGin(guard func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		for _, param := range c.Params {
			c.Request.SetPathValue(param.Key, param.Value)
		}
		passed, outer := false, c.Writer
		guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed, c.Request = true, r
			if w == http.ResponseWriter(outer) { // Middleware passes it on as it is
				c.Next()
				return
			}
			inner := &ginWriter{ResponseWriter: outer, w: w, status: http.StatusOK, size: -1}
			c.Writer = inner
			defer func() { c.Writer = outer }() // after a panic too, for gin.Recovery
			c.Next()
			inner.WriteHeaderNow()
		})).ServeHTTP(outer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}

// A ginWriter is what handlers of gin write to while the response belongs to a
// middleware of net/http. It neither flushes nor hijacks, as the one of Once.
type ginWriter struct {
	gin.ResponseWriter // for what else gin asks for
	w                  http.ResponseWriter
	status             int
	size               int // -1 until the header is written
}

func (g *ginWriter) Header() http.Header { return g.w.Header() }
func (g *ginWriter) Status() int         { return g.status }
func (g *ginWriter) Size() int           { return g.size }
func (g *ginWriter) Written() bool       { return g.size >= 0 }
func (g *ginWriter) Flush()              {}

func (g *ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// WriteHeader leaves the header to be written with the body, as handlers of gin are
// used to.
func (g *ginWriter) WriteHeader(status int) {
	if !g.Written() && status > 0 {
		g.status = status
	}
}

func (g *ginWriter) WriteHeaderNow() {
	if !g.Written() {
		g.size = 0
		g.w.WriteHeader(g.status)
	}
}

func (g *ginWriter) Write(p []byte) (int, error) {
	g.WriteHeaderNow()
	n, err := g.w.Write(p)
	g.size += n
	return n, err
}

func (g *ginWriter) WriteString(s string) (int, error) { return g.Write([]byte(s)) }
