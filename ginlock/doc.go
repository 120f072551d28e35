// Package ginlock guards routes of gin by the middleware of package httplock.
//
//	idempotent := httplock.Once(locks, records, &httplock.OnceOptions{Scope: httplock.User(userOf)})
//	engine.POST("/payments", ginlock.Wrap(idempotent), pay)
//
// gin goes on to the next handler when a middleware returns, unless the middleware
// aborts, and handlers write to the gin.Context, whatever the ResponseWriter of the
// middleware is. So a wrapper that only calls c.Next from an [http.Handler] runs the
// handler of a request that has been refused. Under httplock.Once, that wrapper remembers
// an empty response and runs the effect again for every repeat. [Wrap] does neither.
package ginlock
