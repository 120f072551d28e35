// Package httplock guards the handlers of a web service by locks that hold across all
// servers of the service. The package needs net/http only. The middlewares fit routers that
// take a func(http.Handler) http.Handler, such as the standard mux and chi. For gin use
// ginlock, for echo a wrapper as in examples/http; docs/http.md explains the mistakes in
// the obvious wrappers.
//
//	guard := httplock.Locked(locks, httplock.User(userOf), nil)
//	mux.Handle("POST /exports", guard(exports))
//
//	idempotent := httplock.Once(locks, records, &httplock.OnceOptions{Scope: httplock.User(userOf)})
//	mux.Handle("POST /payments", idempotent(payments))
//
// # Which middleware
//
//   - Requests must not overlap, such as two exports of a user: [Locked].
//     The second request gets 409, or waits for its turn.
//   - Requests must take effect once, however often they are sent, such as a form
//     submitted twice or a payment retried: [Once]. Repeats get the response of the
//     first request, also long after that request has ended.
//   - Requests come from clients that hold a lock of their own, and may have lost it:
//     [Transport] in the client, [Fenced] in the server. An outdated holder gets 412.
//
// # Keys
//
// A [KeyFunc] decides which requests exclude each other: the requests of a [User], requests
// with the same [Header], hidden field of a [Form] or [PathValue], or any combination
// ([Join]). Take the key from data that the client cannot choose freely, or join the key
// with such data. Otherwise a client can keep other clients waiting.
//
//	key := httplock.Join(httplock.User(userOf), httplock.Route)
//	key := httplock.Required(httplock.Form("token"), "Load the form again.")
//
// # Inside a handler
//
// The request's context ends when the lock is lost, with the reason as its cause: pass the
// context to every call of the handler. The context carries the lock:
//
//	lock, ok := holdfast.FromContext(r.Context())
//
// The lock's fencing token lets a database reject a handler that was paused for longer than
// its lease (see package fence).
//
// # Answers
//
// Refused requests are answered with problem details (RFC 9457), or by your own
// [Responder]:
//
//	400  a required key is missing, the key is invalid, or the form cannot be read
//	409  another request with the key is in progress; Retry-After is the rest of its
//	     lease, but the lock may be released sooner, or later after a renewal
//	412  the fencing token is outdated
//	413  the body is too large to compare with a repeat, or to be searched for the key
//	422  the key was used before, with a different request
//	428  the fencing token is missing
//	500  the server is misconfigured: the log has the reason
//	503  the lock store or the records do not answer
//
// Answers to clients never name the holder or the store.
package httplock
