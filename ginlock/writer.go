package ginlock

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// A writer is the ResponseWriter of gin handlers while the response belongs to a guard. The
// writer keeps the header back until there is a body, as gin's own writer does.
type writer struct {
	gin.ResponseWriter // of gin, for the other methods
	w                  http.ResponseWriter
	status             int
	answered           bool // a handler has set the status, or written
	size               int
}

const unwritten = -1 // the size until the header is written

var _ gin.ResponseWriter = (*writer)(nil)

func (g *writer) Header() http.Header { return g.w.Header() }
func (g *writer) Status() int         { return g.status }
func (g *writer) Size() int           { return g.size }
func (g *writer) Written() bool       { return g.size != unwritten }

func (g *writer) WriteHeader(status int) {
	if !g.Written() && status > 0 {
		g.status, g.answered = status, true
	}
}

func (g *writer) WriteHeaderNow() {
	if !g.Written() {
		g.size, g.answered = 0, true
		g.w.WriteHeader(g.status)
	}
}

func (g *writer) Write(p []byte) (int, error) {
	g.WriteHeaderNow()
	n, err := g.w.Write(p)
	g.size += n
	return n, err
}

func (g *writer) WriteString(s string) (int, error) { return g.Write([]byte(s)) }

// Flush does nothing under httplock.Once.
func (g *writer) Flush() { _ = g.FlushError() }

// FlushError, Hijack and Unwrap are for [http.ResponseController].
func (g *writer) FlushError() error {
	g.WriteHeaderNow()
	return http.NewResponseController(g.w).Flush()
}

func (g *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(g.w).Hijack()
}

func (g *writer) Unwrap() http.ResponseWriter { return g.w }
