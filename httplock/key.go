package httplock

import (
	"context"
	"net/http"
	"strings"
)

// A KeyFunc returns the key that a request needs: requests with equal keys exclude each
// other. "" leaves the request unguarded. A key has up to 512 bytes of UTF-8, including the
// Locker's prefix; an invalid key is answered with 400.
//
// A [*Problem] that the KeyFunc returns is answered unchanged, for example with 400. Every
// other error is answered with 500, and its text is only logged.
//
// The KeyFuncs of this package put their kind and name before the value, as in
// "header/Order/7". So a client cannot name a lock that other parts of the program use.
type KeyFunc func(r *http.Request) (string, error)

// User takes the key from the user who sends the request. id returns the user from the
// request's context, where the middleware that authenticates requests has stored it. If
// id returns "", the request is unguarded.
func User(id func(ctx context.Context) string) KeyFunc {
	return func(r *http.Request) (string, error) {
		return named("user/", id(r.Context())), nil
	}
}

// Header takes the key from a header with the given name. Clients choose the value freely:
// [Join] the key with [User] unless the value cannot be guessed.
func Header(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	kind := "header/" + name + "/"
	return func(r *http.Request) (string, error) {
		return named(kind, r.Header.Get(name)), nil
	}
}

// PathValue takes the key from a wildcard of the route's pattern, as
// [http.Request.PathValue] returns the value. Routers other than net/http's may not set
// the value, or not before the middleware runs. chi sets the value for a middleware of
// the route itself; ginlock does so for gin. A request without the value is unguarded,
// unless [Required] refuses it.
func PathValue(name string) KeyFunc {
	kind := "path/" + name + "/"
	return func(r *http.Request) (string, error) {
		return named(kind, r.PathValue(name)), nil
	}
}

// Route takes the key from the matched pattern, such as "POST /orders/{id}", or from method
// and path if no pattern is known. Route is for [Join]: a user may then use different
// routes at the same time.
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

// Join combines several keys into a single key; different lists of parts never give the
// same key. If a part is "", the combined key is "": use [Required] for parts that must be
// there.
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

// join appends a part.
func join(parts, key string) string {
	key = unbarred.Replace(key)
	if parts == "" {
		return key
	}
	return parts + "|" + key
}

// unbarred escapes | in parts, which | separates.
var unbarred = strings.NewReplacer("|", "%7C", "%", "%25")

// Required answers requests without a key with 400. The detail tells the client what is
// missing, such as "Send an Order header."
func Required(key KeyFunc, detail string) KeyFunc {
	return func(r *http.Request) (string, error) {
		k, err := key(r)
		if k == "" && err == nil {
			err = badRequest(detail)
		}
		return k, err
	}
}
