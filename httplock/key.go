package httplock

import (
	"context"
	"net/http"
	"strings"
)

// A KeyFunc names what a request must have for itself: requests with equal keys
// exclude each other. "" leaves the request unguarded. A key that is no key of a
// lock, which has up to 512 bytes of UTF-8 with the Locker's prefix, is answered
// with 400.
//
// A [*Problem] that it returns is answered as it is, for example with 400.
// Any other error is answered with 500 and its text only logged.
//
// The KeyFuncs of this package put their kind and name before the value, as in
// "header/Order/7": whatever a client sends, it cannot name a lock that other
// parts of the program take.
type KeyFunc func(r *http.Request) (string, error)

// User is the key of whoever makes the request, as id finds it in the request's
// context, where the middleware that authenticates has put it. Requests for
// which it returns "" are unguarded.
func User(id func(ctx context.Context) string) KeyFunc {
	return func(r *http.Request) (string, error) {
		return named("user/", id(r.Context())), nil
	}
}

// Header is the key that the client sends in a header of this name. Clients
// choose its value freely: [Join] it with [User] unless it cannot be guessed.
func Header(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	kind := "header/" + name + "/"
	return func(r *http.Request) (string, error) {
		return named(kind, r.Header.Get(name)), nil
	}
}

// PathValue is the key in a wildcard of the route's pattern, as
// [http.Request.PathValue] has it. Routers other than that of net/http may not
// set it, or not yet when the middleware runs; chi does for a middleware of the
// route itself (ext/examples/http has chi, echo and gin).
func PathValue(name string) KeyFunc {
	kind := "path/" + name + "/"
	return func(r *http.Request) (string, error) {
		return named(kind, r.PathValue(name)), nil
	}
}

// Route is the pattern that the request has matched, such as
// "POST /orders/{id}", or its method and path where no pattern is known. It is
// for [Join]: the same user may then use different routes at the same time.
func Route(r *http.Request) (string, error) {
	if r.Pattern != "" {
		return named("route/", r.Pattern), nil
	}
	return named("route/", r.Method+" "+r.URL.Path), nil
}

func named(kind, value string) string {
	if value == "" {
		return ""
	}
	return kind + value
}

// Join makes one key of several; no two lists of parts have the same. If a part
// is "", so is the key: use [Required] for those that must be there.
func Join(parts ...KeyFunc) KeyFunc {
	return func(r *http.Request) (string, error) {
		joined := ""
		for _, part := range parts {
			key, err := part(r)
			if key == "" || err != nil {
				return "", err
			}
			joined = join(joined, key)
		}
		return joined, nil
	}
}

// join adds a part to those before it.
func join(parts, key string) string {
	key = unbarred.Replace(key)
	if parts == "" {
		return key
	}
	return parts + "|" + key
}

// unbarred makes room for | between parts.
var unbarred = strings.NewReplacer("|", "%7C", "%", "%25")

// Required answers requests without a key with 400. The detail tells the client
// what is missing, such as "Send an Order header."
func Required(key KeyFunc, detail string) KeyFunc {
	return func(r *http.Request) (string, error) {
		k, err := key(r)
		if k == "" && err == nil {
			err = badRequest(detail)
		}
		return k, err
	}
}
