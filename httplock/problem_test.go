package httplock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

func TestProblemOf(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		retry  string
	}{
		{&holdfast.HeldError{Left: 2*time.Second + 1}, 409, "3"},
		{&holdfast.HeldError{Left: time.Millisecond}, 409, "1"},
		{&holdfast.HeldError{}, 409, "1"},
		{fmt.Errorf("%w while %w", context.DeadlineExceeded, holdfast.ErrHeld), 409, "1"},
		{&holdfast.LostError{Reason: holdfast.LossBroken}, 409, "1"},
		{&fence.OutdatedError{Key: "k", Token: 1, Highest: 2}, 412, ""},
		{&http.MaxBytesError{Limit: 7}, 413, ""},
		{once.ErrMismatch, 422, ""},
		{holdfast.ErrInvalidKey, 400, ""},
		{holdfast.ErrInvalid, 500, ""},
		{holdfast.ErrDeadlock, 500, ""},
		{holdfast.ErrNotFenced, 500, ""},
		{holdfast.ErrClosed, 503, ""},
		{context.DeadlineExceeded, 503, ""},
		{errors.New("refused"), 503, ""},
		{&httplock.Problem{Status: 418, Detail: "Short and stout."}, 418, ""},
	} {
		err := fmt.Errorf("wrapped: %w", c.err)
		p := httplock.ProblemOf(err)
		w := httptest.NewRecorder()
		w.Header().Set("Content-Length", "1") // of the response that was meant to be
		p.ServeHTTP(w, newRequest(""))
		wantProblem(t, w, c.status, p.Detail)
		if got := w.Header().Get("Retry-After"); got != c.retry {
			t.Errorf("%v: Retry-After %q, want %q", err, got, c.retry)
		}
		if length := w.Header().Get("Content-Length"); length != "" {
			t.Errorf("%v: Content-Length %s", err, length)
		}
		if p.Err != nil && (!errors.Is(p, c.err) || !strings.Contains(p.Error(), c.err.Error())) {
			t.Errorf("%v does not tell of %v", p, c.err)
		}
	}
}

// A middleware that nobody gave a Logger still says why it refuses every request.
func TestDefaultLogger(t *testing.T) {
	locks, records := newLocks(t, memlock.New()), new(once.Memory)
	lost := func(*http.Request) (string, error) { return "", errors.New("no session") }
	for want, guard := range map[string]func(http.Handler) http.Handler{
		"needs a Locker and a KeyFunc":    httplock.Locked(locks, nil, nil),
		"Scope must name the owner":       httplock.Once(locks, records, nil),
		"httplock.Once needs a Locker":    httplock.Once(nil, records, &httplock.OnceOptions{Scope: httplock.Anyone}),
		"httplock.Fenced needs Fences":    httplock.Fenced(nil, nil, nil),
		"find the key: no session":        httplock.Locked(locks, lost, &httplock.Options{FailOpen: true}),
		"method=POST path=/orders error=": httplock.Once(locks, records, &httplock.OnceOptions{Scope: lost}),
	} {
		// A program may set its logger after it has made its routes.
		text := setDefaultLogger(t)
		w := serve(guard(created), submit("a", "tea"))
		wantProblem(t, w, http.StatusInternalServerError, "not set up")
		if !strings.Contains(text.String(), "level=ERROR") || !strings.Contains(text.String(), want) {
			t.Errorf("%s: the log has %q", want, text)
		}
	}
	text := setDefaultLogger(t)
	silent := &httplock.Options{Logger: slog.New(slog.DiscardHandler)}
	serve(httplock.Locked(locks, nil, silent)(created), submit("a", "tea"))
	for _, r := range []*http.Request{submit("", "tea"), submit("a", "tea"), submit("a", "milk")} { // mistakes of clients
		serve(httplock.Once(locks, records, &httplock.OnceOptions{Scope: httplock.Anyone})(created), r)
	}
	if text.Len() > 0 {
		t.Errorf("the log has %s", text)
	}
}

// setDefaultLogger returns what is logged by default, to the end of the test.
func setDefaultLogger(t *testing.T) *bytes.Buffer {
	var text bytes.Buffer
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	t.Cleanup(func() {
		slog.SetDefault(logger)
		log.SetOutput(writer) // which slog has set
		log.SetFlags(flags)
	})
	return &text
}
