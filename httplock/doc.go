// Package httplock guards the handlers of a web service by locks that hold over
// all its servers. It needs net/http only, and serves whatever takes a
// func(http.Handler) http.Handler: the standard mux, chi, echo, gin and others.
//
//	guard := httplock.Middleware(locks, httplock.User(userOf), nil)
//	mux.Handle("POST /exports", guard(exports))
//
//	idempotent := httplock.Once(locks, records, &httplock.OnceOptions{Scope: httplock.User(userOf)})
//	mux.Handle("POST /payments", idempotent(payments))
//
// # Which middleware
//
//   - Requests that must not overlap, such as two exports of one user: [Middleware].
//     The second gets 409, or waits for its turn.
//   - Requests that must take effect once, however often they are sent, such as a
//     form that is submitted twice or a payment that is tried again: [Once]. The
//     repeats get the response of the first, also long after it has ended.
//   - Requests that come from holders of locks elsewhere, which may have lost them:
//     [Transport] in the client, [Fenced] in the server. Who is outdated gets 412.
//
// # Keys
//
// A [KeyFunc] says which requests exclude each other: those of one [User], with the
// same [Header], hidden field of a [Form] or [PathValue], or any combination
// ([Join]). The key of a request must come from what the client cannot choose
// freely, or be joined with that: otherwise one client can keep another waiting.
//
//	key := httplock.Join(httplock.User(userOf), httplock.Route)
//	key := httplock.Required(httplock.Form("token"), "Load the form again.")
//
// # Inside a handler
//
// The request's context ends when the lock is lost, with the reason as its cause:
// pass it on to all that the handler calls. It carries the lock:
//
//	lock, ok := holdfast.FromContext(r.Context())
//
// whose fencing token lets a database refuse a handler that was paused for longer
// than its lease (see package fence).
//
// # Answers
//
// Refused requests are answered with problem details (RFC 9457), or by a [Responder]
// of yours:
//
//	400  a required key is missing, or no key
//	409  another request for the same is being worked on; Retry-After says for how
//	     long its lease runs, though it may end sooner, or later if it is renewed
//	412  the fencing token is outdated
//	413  the body is too large, for a repeat to be told from another request or to
//	     be searched for its key
//	422  the key of a repeat was used before, with another request
//	428  the fencing token is missing
//	500  the server is not set up for this: the log says what is wrong
//	503  the store of the locks, or the records, do not answer
//
// What a client is told never names the holder or the store.
package httplock
