package httplock

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/caller"
)

// Fences remember the highest token of each key. [fence.Memory] implements Fences.
type Fences interface {
	// Check calls write if no larger token of the key has been seen, and
	// otherwise returns an error that matches [fence.ErrOutdated]. A larger token
	// must not pass before write has returned.
	Check(ctx context.Context, key string, token uint64, write func() error) error
}

var _ Fences = (*fence.Memory)(nil)

// FencedOptions are the settings of [Fenced]. The zero value is ready to use.
type FencedOptions struct {
	// Respond answers requests that are refused. Default: problem details in JSON.
	Respond Responder

	// Logger receives requests that are refused through no fault of the client. Default:
	// [slog.Default].
	Logger *slog.Logger
}

// Fenced lets a request through if the request carries the token of the lock on its key
// (see [Transport]). If a larger token has been seen, the request gets 412. A request
// without a token, or with the token of another key, gets 428; a malformed token or key
// gets 400. A request with a larger token waits until the handlers of smaller tokens have
// returned. If the request's context ends meanwhile, the request gets 503.
//
// key returns the key of the lock that a request needs, as the client names it; "" means
// that the request needs no lock. A nil key trusts the client's choice of the key, which
// protects the data of that lock and nothing else.
//
// Authenticate clients first: every client can send any token, and a very large token shuts
// out all other clients. If the handler writes to a database, let the database remember the
// tokens ([Token] and [fence.SQL]): such a check holds for several servers and over
// restarts.
//
// nil means the default options. An invalid argument is logged, and answered to every
// request with 500.
func Fenced(fences Fences, key KeyFunc, opts *FencedOptions) func(http.Handler) http.Handler {
	if opts == nil {
		opts = &FencedOptions{}
	}
	a := newAnswers(opts.Respond, opts.Logger)
	if fences == nil {
		return a.broken(errors.New("httplock.Fenced needs Fences"))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if key == nil {
				a.check(fences, w, r, next, "")
				return
			}
			want, err := key(r)
			switch {
			case err != nil:
				a.refuseKey(w, r, err)
			case want == "":
				next.ServeHTTP(w, r)
			default:
				a.check(fences, w, r, next, want)
			}
		})
	}
}

// check serves a request whose token passes. If want is not "", the request's key must be
// equal to want.
func (a answers) check(fences Fences, w http.ResponseWriter, r *http.Request, next http.Handler, want string) {
	key, token, err := Token(r)
	if err == nil && want != "" && key != want {
		err = &Problem{Status: http.StatusPreconditionRequired, Detail: "This request carries the token of a lock on something else."}
	}
	if err == nil {
		err = fences.Check(r.Context(), key, token, func() error {
			next.ServeHTTP(w, r)
			return nil
		})
	}
	if err != nil {
		a.refuse(w, r, err)
	}
}

// Token returns the key and the fencing token of a request. The error is a [*Problem]: 428
// if the request has neither, 400 if they are malformed.
func Token(r *http.Request) (key string, token uint64, err error) {
	keys, tokens := r.Header.Values(KeyHeader), r.Header.Values(FenceHeader)
	if len(keys) == 0 && len(tokens) == 0 {
		return "", 0, &Problem{
			Status: http.StatusPreconditionRequired,
			Detail: "This request needs a lock: send " + KeyHeader + " and " + FenceHeader + ".",
		}
	}
	if len(keys) != 1 || len(tokens) != 1 {
		return "", 0, badRequest("Send " + KeyHeader + " and " + FenceHeader + " once each.")
	}
	key, err = url.PathUnescape(keys[0])
	if err != nil || caller.CheckKey(key) != nil {
		return "", 0, badRequest(KeyHeader + " must be a key of 1 to 512 bytes of UTF-8, percent-encoded.")
	}
	token, err = strconv.ParseUint(tokens[0], 10, 64)
	if err != nil || token == 0 || token > math.MaxInt64 {
		return "", 0, badRequest(FenceHeader + " must be a number from 1 to 9223372036854775807.")
	}
	return key, token, nil
}
