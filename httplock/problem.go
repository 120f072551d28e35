package httplock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/once"
)

// A Problem is the reason why a request is refused. As a handler, a Problem answers with
// the problem details of RFC 9457 in JSON.
type Problem struct {
	Status     int           // such as 409
	Detail     string        // a sentence for the client
	RetryAfter time.Duration // when to retry; 0: unknown
	Err        error         // for logs, not for clients; may be nil
}

// ProblemOf returns the answer to an error of this module, also for handlers that acquire
// locks themselves:
//
//   - [holdfast.ErrHeld]: 409, with RetryAfter
//   - [holdfast.ErrLost]: 409
//   - [fence.ErrOutdated]: 412
//   - an [http.MaxBytesError]: 413
//   - [once.ErrMismatch]: 422
//   - a Problem: unchanged
//   - [holdfast.ErrInvalidKey]: 400
//   - every other [holdfast.ErrInvalid], [holdfast.ErrDeadlock], [holdfast.ErrNotFenced]: 500,
//     since the program has made an impossible request
//   - every other error: 503, since a store did not answer
func ProblemOf(err error) *Problem {
	var problem *Problem
	var held *holdfast.HeldError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, holdfast.ErrHeld):
		retry := time.Second
		if errors.As(err, &held) {
			retry = max(retry, held.Left)
		}
		return &Problem{Status: http.StatusConflict, Detail: heldDetail, RetryAfter: retry, Err: err}
	case errors.Is(err, holdfast.ErrLost):
		return &Problem{Status: http.StatusConflict, Detail: "The lock of this request was taken from it.", RetryAfter: time.Second, Err: err}
	case errors.Is(err, fence.ErrOutdated):
		return &Problem{Status: http.StatusPreconditionFailed, Detail: "The lock of this request has a new holder.", Err: err}
	case errors.As(err, &large):
		p := tooLarge(large.Limit)
		p.Err = err
		return p
	case errors.Is(err, once.ErrMismatch):
		return &Problem{Status: http.StatusUnprocessableEntity, Detail: "This key was used before, with a different request.", Err: err}
	case errors.Is(err, holdfast.ErrInvalidKey):
		return unfitKey(err)
	case misconfigured(err):
		return serverError(err)
	}
	return &Problem{Status: http.StatusServiceUnavailable, Detail: "The server cannot do this at the moment.", Err: err}
}

func misconfigured(err error) bool {
	return errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrDeadlock) || errors.Is(err, holdfast.ErrNotFenced)
}

func serverError(err error) *Problem {
	return &Problem{Status: http.StatusInternalServerError, Detail: "The server is not set up for this request.", Err: err}
}

const heldDetail = "Another request for the same is being worked on."

func unfitKey(err error) *Problem {
	return &Problem{Status: http.StatusBadRequest, Detail: "The key of this request is too long, or not UTF-8.", Err: err}
}

func badRequest(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Detail: detail}
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("httplock: %d: %s", p.Status, p.Detail)
	if p.Err != nil {
		text += " (" + p.Err.Error() + ")"
	}
	return text
}

// Unwrap returns Err.
func (p *Problem) Unwrap() error { return p.Err }

// ServeHTTP answers with the problem. Headers that describe the replaced response, such
// as Content-Length, are removed, as by [http.Error].
func (p *Problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for _, ofAnother := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified"} {
		w.Header().Del(ofAnother)
	}
	text, _ := json.Marshal(struct { // cannot fail
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(p.Status), p.Status, p.Detail})
	p.setRetryAfter(w.Header())
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	w.Write(text)
}

func (p *Problem) setRetryAfter(h http.Header) {
	if p.RetryAfter > 0 {
		seconds := (p.RetryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
}

// A Responder answers a refused request. The Responder may call [Problem.ServeHTTP] for
// problems without an answer of its own. Set Retry-After as [Problem.ServeHTTP] does.
type Responder func(w http.ResponseWriter, r *http.Request, p *Problem)

// answers hold the Responder and the Logger of a middleware.
type answers struct {
	respond Responder
	logger  *slog.Logger // nil: slog.Default at the time of the entry
}

func newAnswers(respond Responder, logger *slog.Logger) answers {
	if respond == nil {
		respond = func(w http.ResponseWriter, r *http.Request, p *Problem) { p.ServeHTTP(w, r) }
	}
	return answers{respond, logger}
}

// refuse answers with the Problem of an error.
func (a answers) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := ProblemOf(err)
	left := r.Context().Err() != nil && errors.Is(err, context.Canceled)
	if p.Status >= 500 && !left { // a client that leaves is not the server's fault
		a.log(r, "request is refused", err)
	}
	a.respond(w, r, p)
}

// refuseKey answers after a KeyFunc has failed.
func (a answers) refuseKey(w http.ResponseWriter, r *http.Request, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		err = serverError(fmt.Errorf("find the key: %w", err))
	}
	a.refuse(w, r, err)
}

func (a answers) log(r *http.Request, text string, err error) {
	// The context may have ended because the client left; the log entry is written anyway.
	cmp.Or(a.logger, slog.Default()).ErrorContext(context.WithoutCancel(r.Context()), text, "method", r.Method, "path", r.URL.Path, "error", err)
}
