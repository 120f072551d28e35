package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// Wrap makes a gin middleware of a net/http middleware, such as httplock.Locked,
// httplock.Once or httplock.Fenced. Use Wrap for a route, a group or the engine.
//
// A request that the guard answers itself is aborted: no further gin handler runs. Later
// handlers find the guard's request in c.Request, whose context carries the lock, and write
// through the guard's ResponseWriter. httplock.PathValue knows the parameters of the path.
//
// Under httplock.Once, c.Writer neither flushes nor hijacks, and c.Stream sends its
// response at the end. If a handler leaves an error in c.Errors, and neither writes nor
// sets a status, the answer is 500, which is not remembered. A middleware around Wrap can
// still write another answer.
//
// The guard must call its handler before it returns, in the same goroutine, because gin
// reuses the Context afterwards. [http.TimeoutHandler] does not: put it around the engine.
func Wrap(guard func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		for _, param := range c.Params {
			c.Request.SetPathValue(param.Key, param.Value)
		}
		passed := false
		guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed = true
			next(c, w, r)
		})).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}

// next runs the handlers behind the guard, with the guard's ResponseWriter and request.
func next(c *gin.Context, w http.ResponseWriter, r *http.Request) {
	outer, request := c.Writer, c.Request
	defer func() { c.Writer, c.Request = outer, request }() // after a panic too, for gin.Recovery
	c.Request = r
	if own, ok := w.(gin.ResponseWriter); ok { // Middleware passes its ResponseWriter on
		c.Writer = own
		c.Next()
		return
	}
	inner := &writer{ResponseWriter: outer, w: w, status: outer.Status(), size: unwritten}
	c.Writer = inner
	before := len(c.Errors)
	c.Next()
	if !inner.answered && len(c.Errors) > before {
		inner.status = http.StatusInternalServerError
	}
	inner.WriteHeaderNow()
}
