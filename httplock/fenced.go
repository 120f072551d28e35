package httplock

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
)

// Fences remember the highest token of each key. [fence.Memory] are some.
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

	// Logger is told of requests that are refused for no fault of the client.
	// Default: nothing is logged.
	Logger *slog.Logger
}

// Fenced lets requests through that carry the token of the lock on their key (see
// [Transport]), unless a larger one has been seen: that is answered with 412.
// Requests without a token, or with that of another key, get 428, and those that
// make no sense 400. A request with a larger token waits for the handlers of
// smaller ones to return; one whose context ends meanwhile gets 503.
//
// The key says what lock a request needs, as the client takes it: "" is for those
// that need none. A nil key takes the client's word for it, which protects what
// its lock is for and nothing else.
//
// Whoever can send requests can send any token, and with a very large one shut out
// all others: authenticate first. Where the handler writes to a database, let that
// remember the tokens ([Token] and [fence.SQL]), and it holds for several servers
// and over restarts.
//
// nil means the default options. What is wrong with an argument is answered to every
// request with 500 and logged.
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

// check serves a request whose token passes. Its key must be the wanted one, if
// there is one.
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

// Token returns key and fencing token that a request carries. The error is a
// [*Problem]: 428 if there are none, 400 if they make no sense.
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
	if err != nil || driver.CheckKey(key) != nil {
		return "", 0, badRequest(KeyHeader + " must be a key of 1 to 512 bytes of UTF-8, percent-encoded.")
	}
	token, err = strconv.ParseUint(tokens[0], 10, 64)
	if err != nil || token == 0 || token > math.MaxInt64 {
		return "", 0, badRequest(FenceHeader + " must be a number from 1 to 9223372036854775807.")
	}
	return key, token, nil
}
