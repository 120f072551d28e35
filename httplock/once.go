package httplock

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/once"
)

// OnceOptions are the settings of [Once]. Scope must be set; every other field may keep its
// zero value.
type OnceOptions struct {
	// Scope names the client that owns the keys, usually by [User]. Equal keys of two
	// clients are independent, and no client sees the response to another client. A request
	// with the scope "" gets 400. Use [Anyone] only for keys that no other client can
	// guess, such as the hidden token of a form.
	Scope KeyFunc

	// Key names the request. Requests without a key are served as usual, and not
	// remembered. Default: [IdempotencyKey], with 400 if the key is missing.
	Key KeyFunc

	// Retention is how long a response is remembered, from 1ms to ten years. Default 24h.
	Retention time.Duration

	// Lock has the options for acquiring the lock of a key. A repeat that arrives while the
	// first request is in progress gets 409 at once. With a [holdfast.Wait] here, the
	// repeat waits for the response instead. Only exclusive locks are accepted.
	Lock []holdfast.LockOption

	// MaxRequest limits the body of a request, in bytes; a larger request gets 413 before
	// anything is done. Default 1 MiB. Each request in progress holds its body in memory.
	MaxRequest int64

	// MaxResponse limits the response body that is kept, in bytes, up to 960 KiB. Default
	// 256 KiB. [Once] describes the treatment of larger responses.
	MaxResponse int

	// Keep reports whether a response is remembered. Default: status 200 to 499, except
	// 408, 425, 429, 499 (for clients that have left), and every status from 400 on with
	// Retry-After. If Keep returns false, the next request with the key is served anew.
	Keep func(status int, header http.Header) bool

	// Headers are the names of the headers that are remembered. Default: Cache-Control,
	// Content-Type, -Disposition, -Encoding, -Language, -Location, ETag, Last-Modified,
	// Link, Location, Retry-After and X-Content-Type-Options.
	Headers []string

	// Fingerprint returns the content that two requests with the same key must share.
	// Default: method, host, path, query and body. The path is the client's path together
	// with the path of r, from which [http.StripPrefix] may have removed the route. The
	// port of the host does not count, nor does the boundary of a multipart form, which
	// browsers generate anew for every request.
	Fingerprint func(r *http.Request, body []byte) string

	// Respond answers requests that are refused. Default: problem details in JSON.
	Respond Responder

	// Logger receives requests refused through no fault of the client, and responses that
	// could not be remembered. Default: [slog.Default].
	Logger *slog.Logger
}

// Limits and defaults of requests and responses.
const (
	defaultRequest  = 1 << 20
	defaultResponse = 256 << 10
	maxResponse     = once.MaxResult - 64<<10 // the rest is for headers
)

// ReplayedHeader is set, to true, on a response that was remembered.
const ReplayedHeader = "Idempotent-Replayed"

// Once serves the first request of a key and replays its response to every repeat, on every
// server, until the retention is over.
//
// A repeat gets the same status, body and [OnceOptions].Headers, with [ReplayedHeader].
// While the first request is in progress, the repeat gets 409, or waits. A repeat with a
// different [OnceOptions].Fingerprint gets 422. If the server of the first request dies, a
// repeat is served anew one TTL later.
//
// A request is finished when its handler returns. The response is remembered even if the
// client has left or the lock was lost meanwhile: a client that timed out retries the
// request, and the effect must not happen twice. A handler that returns without writing has
// answered with an empty 200, as in net/http. So a handler that stops before its effect
// must report the failure: by a response that Keep refuses, such as [http.Error] with 503,
// or by panic([http.ErrAbortHandler]). The next request with the key is then served anew.
//
// The handler's context ends when the client leaves. For an effect that must not be cut off
// then, use a context that ends only with the lock, as in the example below.
//
// The response is sent after it is remembered, so a handler can neither flush nor hijack:
// the ResponseWriter has no such methods, and [http.ResponseController] returns
// [http.ErrNotSupported]. Trailers are dropped. When the body grows beyond MaxResponse,
// the response is passed on directly, and only the status is remembered: repeats get 409,
// with the status of the first response in the detail. If the record cannot be written,
// the response is sent anyway and the error is logged; a repeat may then be served anew.
// If an effect must not happen twice even then, commit the effect with its record: see
// package once.
//
// Put an [http.TimeoutHandler] around the middleware, as with [Locked]. GET, HEAD,
// OPTIONS and TRACE requests are served as usual, since they may be repeated. Other
// requests that would switch protocols get 400, except to h2c, which a server may ignore.
//
// All servers need the same lock store, which must have fencing tokens, and the same
// records. If the lock store or the records do not answer, the client gets 503. An invalid
// argument is logged, and answered to every request with 500.
func Once(locks *holdfast.Locker, records once.Records, opts *OnceOptions) func(http.Handler) http.Handler {
	if opts == nil {
		opts = &OnceOptions{}
	}
	a := newAnswers(opts.Respond, opts.Logger)
	o := *opts
	if err := o.resolve(); err != nil {
		return a.broken(err)
	}
	if locks == nil || records == nil {
		return a.broken(errors.New("httplock.Once needs a Locker and Records"))
	}
	return func(next http.Handler) http.Handler {
		return &single{answers: a, opts: o, effects: once.Runner{Locks: locks, Records: records, Retention: o.Retention}, next: next}
	}
}

// Anyone is the [OnceOptions].Scope of keys that all clients share.
func Anyone(*http.Request) (string, error) { return "anyone", nil }

// resolve fills in the defaults.
func (o *OnceOptions) resolve() error {
	if o.MaxRequest == 0 {
		o.MaxRequest = defaultRequest
	}
	if o.MaxResponse == 0 {
		o.MaxResponse = defaultResponse
	}
	switch {
	case o.Scope == nil:
		return errors.New("OnceOptions.Scope must name the owner of a key: use User, or Anyone if no client can guess a foreign key")
	case o.MaxRequest < 0:
		return fmt.Errorf("OnceOptions.MaxRequest is %d; it must be above 0", o.MaxRequest)
	case o.MaxResponse < 0 || o.MaxResponse > maxResponse:
		return fmt.Errorf("OnceOptions.MaxResponse is %d; it must be from 1 to %d", o.MaxResponse, maxResponse)
	case o.Retention != 0 && (o.Retention < time.Millisecond || o.Retention > once.MaxRetention):
		return fmt.Errorf("OnceOptions.Retention is %v; it must be from 1ms to %v", o.Retention, once.MaxRetention)
	}
	if o.Key == nil {
		o.Key = Required(IdempotencyKey, "Send an Idempotency-Key header.")
	}
	if o.Keep == nil {
		o.Keep = worthKeeping
	}
	if o.Headers == nil {
		o.Headers = []string{
			"Cache-Control", "Content-Type", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
			"ETag", "Last-Modified", "Link", "Location", "Retry-After", "X-Content-Type-Options",
		}
	}
	if o.Fingerprint == nil {
		o.Fingerprint = payload
	}
	o.Scope = Required(o.Scope, "This request does not say whose it is.")
	o.Lock = atOnceUnless(o.Lock)
	return nil
}

// clientClosedRequest is the status that many servers log for a client that has left.
const clientClosedRequest = 499

func worthKeeping(status int, header http.Header) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, clientClosedRequest:
		return false
	}
	again := status >= 400 && header.Get("Retry-After") != "" // below 400, Retry-After says when to look for the result
	return status >= 200 && status < 500 && !again
}

// A single serves each key once.
type single struct {
	answers
	opts    OnceOptions
	effects once.Runner
	next    http.Handler
}

func (s *single) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, r.Method) {
		s.next.ServeHTTP(w, r)
		return
	}
	key, err := s.key(r)
	if err != nil {
		s.refuseKey(w, r, err)
		return
	}
	if key == "" {
		s.next.ServeHTTP(w, r)
		return
	}
	body, err := readBody(r, s.opts.MaxRequest)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	effect, err := s.effects.Begin(r.Context(), key, digest(s.opts.Fingerprint(r, body)), s.opts.Lock...)
	if err != nil {
		s.refuse(w, r, repeatable(err))
		return
	}
	defer s.close(effect, r) // after a panic too
	if kept, done := effect.Result(); done {
		s.replay(w, r, kept)
		return
	}
	s.run(w, r, effect)
}

// key returns the key of the records. Its prefix keeps it apart from the keys of other
// parts of the program.
func (s *single) key(r *http.Request) (string, error) {
	key, err := s.opts.Key(r)
	if err != nil || key == "" {
		return "", err
	}
	if switchesProtocol(r) {
		return "", badRequest("A request that switches protocols has no response that could be repeated.")
	}
	scope, err := s.opts.Scope(r)
	if err != nil {
		return "", err
	}
	key = "http/" + join(join("", scope), key)
	if caller.CheckKey(key) != nil || len(key) > once.MaxKey {
		return "", unfitKey(nil)
	}
	return key, nil
}

func switchesProtocol(r *http.Request) bool {
	upgrade := r.Header.Get("Upgrade")
	return upgrade != "" && !strings.EqualFold(upgrade, "h2c")
}

// repeatable returns the error of a request that may be retried: the lock ended before the
// request had begun.
func repeatable(err error) error {
	if errors.Is(err, fence.ErrOutdated) {
		return &Problem{Status: http.StatusConflict, Detail: heldDetail, RetryAfter: time.Second, Err: err}
	}
	return err
}

// run serves the request and remembers the response before sending it.
func (s *single) run(w http.ResponseWriter, r *http.Request, effect *once.Effect) {
	rec := newRecorder(w, s.opts.MaxResponse)
	serve(effect.Context(r.Context()), s.next, rec, r)
	rec.end()
	if s.opts.Keep(rec.status, rec.sent) {
		err := effect.Finish(r.Context(), keep(rec, s.opts.Headers).encode())
		if err != nil {
			s.log(r, "response is not remembered", err)
		}
	}
	s.close(effect, r) // so that a slow client does not keep repeats waiting
	rec.send()
}

func (s *single) close(effect *once.Effect, r *http.Request) {
	if err := effect.Close(); err != nil {
		s.log(r, "key is not released", err)
	}
}

// replay answers with the remembered response.
func (s *single) replay(w http.ResponseWriter, r *http.Request, kept []byte) {
	reply, err := decode(kept)
	switch {
	case err != nil:
		s.refuse(w, r, serverError(err))
	case reply.Partial:
		s.refuse(w, r, &Problem{
			Status: http.StatusConflict,
			Detail: fmt.Sprintf("This was done before, with status %d; its response was too large to be kept.", reply.Status),
		})
	default:
		reply.send(w)
	}
}
