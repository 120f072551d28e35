package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/once"
)

func TestProblemOf(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		retry  string
	}{
		{&holdfast.HeldError{Retry: 2*time.Second + 1}, 409, "3"},
		{&holdfast.HeldError{Retry: time.Millisecond}, 409, "1"},
		{&holdfast.HeldError{}, 409, "1"},
		{fmt.Errorf("%w while %w", context.DeadlineExceeded, holdfast.ErrHeld), 409, "1"},
		{&holdfast.LostError{Reason: holdfast.LossBroken}, 409, "1"},
		{&fence.OutdatedError{Key: "k", Token: 1, Highest: 2}, 412, ""},
		{&http.MaxBytesError{Limit: 7}, 413, ""},
		{once.ErrMismatch, 422, ""},
		{holdfast.ErrKey, 400, ""},
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
