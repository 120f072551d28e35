package httplock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/once"
)

// OnceOptions are the settings of [Once]. Scope must be set; the zero value does for
// the rest.
type OnceOptions struct {
	// Scope names the client whose keys these are, usually by [User]: two clients
	// that send the same key have nothing to do with each other, and nobody is
	// shown the response to somebody else. A request for which it is "" gets 400.
	// [Anyone] is for keys that no other client can guess, such as the hidden
	// token of a form.
	Scope KeyFunc

	// Key names the request. Requests without a key are served as usual, without
	// being remembered. Default: [IdempotencyKey], without which there is 400.
	Key KeyFunc

	// Retention is how long a response is remembered, from 1ms to ten years.
	// Default 24h.
	Retention time.Duration

	// Lock says how the lock of a key is taken. A repeat that comes while the first
	// is at work gets 409 at once unless there is a [holdfast.Wait] here: then it
	// waits for the response. Only exclusive locks will do.
	Lock []holdfast.LockOption

	// MaxRequest is how many bytes the body of a request may have; a larger one gets
	// 413 before anything is done. Default 1 MiB. Each request that is served holds
	// its body in memory.
	MaxRequest int64

	// MaxResponse is how many bytes of a response's body are kept, up to 960 KiB.
	// Default 256 KiB. See [Once] for what becomes of a larger one.
	MaxResponse int

	// Keep says whether a response is remembered. Default: status 200 to 499, except
	// those that ask to try again, which are 408, 425, 429 and from 400 on all with
	// Retry-After, and 499 itself, which is for clients that have left.
	// If it is not, the next request with the key is served anew.
	Keep func(status int, header http.Header) bool

	// Headers are the names of those that are remembered. Default: Cache-Control,
	// Content-Type, -Disposition, -Encoding, -Language, -Location, ETag, Last-Modified,
	// Link, Location, Retry-After and X-Content-Type-Options.
	Headers []string

	// Fingerprint is what two requests with one key must have in common. Default:
	// method, path, query and body; the boundary of a multipart form, which browsers
	// make anew each time, does not count.
	Fingerprint func(r *http.Request, body []byte) string

	// Respond answers requests that are refused. Default: problem details in JSON.
	Respond Responder

	// Logger is told of requests that are refused for no fault of the client, and
	// of responses that could not be remembered. Default: nothing is logged.
	Logger *slog.Logger
}

// Bounds and defaults of what is kept.
const (
	defaultRequest  = 1 << 20
	defaultResponse = 256 << 10
	maxResponse     = once.MaxResult - 64<<10 // the rest is for headers
)

// ReplayedHeader is set, to true, on a response that was remembered.
const ReplayedHeader = "Idempotent-Replayed"

// Once serves one request per key and gives its response to all that repeat it, in
// whichever server they arrive, until the retention is over.
//
// A repeat gets the same status, body and [OnceOptions].Headers, with
// [ReplayedHeader]. While the first is at work it gets 409, or waits for it. With
// another [OnceOptions].Fingerprint it gets 422. If the server of the first dies,
// a repeat is served anew one TTL after that. A response that is not to be kept, or
// a panic, lets the next request with the key be served anew. So does a handler that
// returns without a response because its context has ended: it is answered for as
// [ProblemOf] does for the cause, which is 409 if the lock was lost.
//
// The response is sent once it is remembered, so a handler can neither flush nor
// hijack: the ResponseWriter has no such methods, and [http.ResponseController]
// returns [http.ErrNotSupported]. Trailers are dropped. If the body grows beyond MaxResponse, it is
// passed on from then on, and only the fact is remembered: repeats get 409 with the
// status that the first has had. If remembering fails, the response is sent all the
// same, and logged; a repeat may then be served anew. For what must not happen
// twice even then, see package once on effects that commit with their records.
//
// An [http.TimeoutHandler] belongs around the middleware, as with [Middleware].
// Requests by GET, HEAD, OPTIONS and TRACE are served as usual, since they may be
// repeated. Others that would switch protocols get 400, except to h2c, which a
// server may ignore.
//
// All servers need the same store of locks, which must have fencing tokens, and the
// same records. If either does not answer there is 503. What is wrong with an
// argument is answered to every request with 500 and logged.
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
		return &single{answers: a, opts: o, locks: locks, records: records, next: next}
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
		return errors.New("OnceOptions.Scope must say whose keys these are: use User, or Anyone if no client can guess those of another")
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

// clientClosedRequest is what many servers answer to nobody.
const clientClosedRequest = 499

func worthKeeping(status int, header http.Header) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, clientClosedRequest:
		return false
	}
	again := status >= 400 && header.Get("Retry-After") != "" // elsewhere it says when to look for the result
	return status >= 200 && status < 500 && !again
}

// A single serves each key once.
type single struct {
	answers
	opts    OnceOptions
	locks   *holdfast.Locker
	records once.Records
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
	effect, err := once.Begin(r.Context(), s.locks, s.records, key,
		once.Options{Fingerprint: digest(s.opts.Fingerprint(r, body)), Retention: s.opts.Retention}, s.opts.Lock...)
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

// key is that of the records: it cannot be one of another part of the program.
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
	if driver.CheckKey(key) != nil || len(key) > once.MaxKey {
		return "", unfitKey(nil)
	}
	return key, nil
}

func switchesProtocol(r *http.Request) bool {
	upgrade := r.Header.Get("Upgrade")
	return upgrade != "" && !strings.EqualFold(upgrade, "h2c")
}

// repeatable is the error of a request that may be sent again: the lock ended
// before the request had begun.
func repeatable(err error) error {
	if errors.Is(err, fence.ErrOutdated) {
		return &Problem{Status: http.StatusConflict, Detail: heldDetail, RetryAfter: time.Second, Err: err}
	}
	return err
}

// run serves the request and has its response remembered before it is sent.
func (s *single) run(w http.ResponseWriter, r *http.Request, effect *once.Effect) {
	rec := newRecorder(w, s.opts.MaxResponse)
	ctx := effect.Context(r.Context())
	serve(ctx, s.next, rec, r)
	if rec.status == 0 && ctx.Err() != nil { // not the empty 200 that it would be otherwise
		s.close(effect, r)
		s.refuse(w, r, context.Cause(ctx))
		return
	}
	rec.end()
	if s.opts.Keep(rec.status, rec.sent) {
		err := effect.Finish(r.Context(), keep(rec, s.opts.Headers).encode())
		if err != nil {
			s.log(r, "response is not remembered", err)
		}
	}
	s.close(effect, r) // so that a slow client does not keep others waiting
	rec.send()
}

func (s *single) close(effect *once.Effect, r *http.Request) {
	if err := effect.Close(); err != nil {
		s.log(r, "key is not given back", err)
	}
}

// replay answers with what was kept.
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
