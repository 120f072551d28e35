package httplock

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/holdfast-go/holdfast"
)

// Options are the settings of [Locked]. The zero value is ready to use.
type Options struct {
	// Lock has the options for acquiring the lock. A request that finds the lock held is
	// refused at once. With a [holdfast.Wait] here, the request waits instead; the wait
	// should be shorter than the timeouts of server and client. [holdfast.MaxHold] ends the
	// context of a handler that hangs, and frees the key soon after. [holdfast.Shared] and
	// [holdfast.Slots] work as well.
	Lock []holdfast.LockOption

	// FailOpen calls the handler without a lock if the store cannot be reached. Use
	// FailOpen for work that may rather run twice than not at all. The handler's context
	// then carries no lock (see [holdfast.FromContext]).
	FailOpen bool

	// Respond answers requests that are refused. Default: problem details in JSON.
	Respond Responder

	// Logger receives requests that are refused through no fault of the client, that
	// FailOpen lets through, or that have lost their lock. Default: [slog.Default].
	Logger *slog.Logger
}

// Locked lets one request per key through at a time, over all servers that use the same
// store. Other requests get 409 with Retry-After, at once or after waiting (see
// [Options].Lock).
//
// The handler's context carries the lock, and ends when the lock is lost. Answer with an
// error then: without an answer, net/http sends an empty 200.
//
// The lock is released when the handler returns or panics. That is before the end of the
// response is sent, unless the handler flushes or sets Content-Length. So a client that
// has its whole response can send its next request. A handler that hijacks the connection
// keeps the lock until the handler returns, not until the connection ends. If the client
// disconnects, the context ends as usual. A waiting request then leaves the queue; a
// running handler keeps the lock until the handler returns.
//
// Put an [http.TimeoutHandler] around the middleware. Inside, the TimeoutHandler would
// return and free the key while the handler still works.
//
// The ResponseWriter is passed on unchanged. nil means the default options. An invalid
// argument is logged, and answered to every request with 500.
func Locked(locks *holdfast.Locker, key KeyFunc, opts *Options) func(http.Handler) http.Handler {
	if opts == nil {
		opts = &Options{}
	}
	g := guard{
		answers:  newAnswers(opts.Respond, opts.Logger),
		locks:    locks,
		key:      key,
		lock:     atOnceUnless(opts.Lock),
		failOpen: opts.FailOpen,
	}
	if locks == nil || key == nil {
		return g.broken(errors.New("httplock.Locked needs a Locker and a KeyFunc"))
	}
	return func(next http.Handler) http.Handler {
		g := g
		g.next = next
		return &g
	}
}

// atOnceUnless puts Wait(0) before the options of a caller, which override Wait(0).
func atOnceUnless(opts []holdfast.LockOption) []holdfast.LockOption {
	return append([]holdfast.LockOption{holdfast.Wait(0)}, opts...)
}

// broken is a middleware that lets nothing through.
func (a answers) broken(err error) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.refuse(w, r, serverError(err))
		})
	}
}

type guard struct {
	answers
	locks    *holdfast.Locker
	key      KeyFunc
	lock     []holdfast.LockOption
	failOpen bool
	next     http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, err := g.key(r)
	if err != nil {
		g.refuseKey(w, r, err)
		return
	}
	if key == "" {
		g.next.ServeHTTP(w, r)
		return
	}
	ctx := r.Context()
	lock, err := g.locks.Lock(ctx, key, g.lock...)
	if err != nil {
		g.without(w, r, err)
		return
	}
	defer func() { // after a panic too
		if err := lock.Unlock(); err != nil {
			g.log(r, "request has lost its lock, or cannot give it back", err)
		}
	}()
	serve(lock.Context(ctx), g.next, w, r)
}

// serve calls a handler with a different context. r then owns the form files that the
// handler has left on disk: the server removes the files of r.
func serve(ctx context.Context, h http.Handler, w http.ResponseWriter, r *http.Request) {
	copied := r.WithContext(ctx)
	h.ServeHTTP(w, copied)
	r.MultipartForm = copied.MultipartForm
}

// without refuses a request that has not acquired its lock, or serves the request if
// FailOpen allows.
func (g *guard) without(w http.ResponseWriter, r *http.Request, err error) {
	unreachable := ProblemOf(err).Status == http.StatusServiceUnavailable && !errors.Is(err, holdfast.ErrClosed)
	if !g.failOpen || !unreachable || r.Context().Err() != nil {
		g.refuse(w, r, err)
		return
	}
	g.log(r, "request runs without its lock", err)
	g.next.ServeHTTP(w, r)
}
