package silence_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

var errDown = errors.New("connection refused")

func TestErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late := context.DeadlineExceeded
	for _, test := range []struct {
		ctx     context.Context
		err     error
		text    string
		matches []error
	}{
		{t.Context(), nil, "<nil>", nil},
		{cancelled, nil, "<nil>", nil},
		{t.Context(), errDown, "connection refused", []error{errDown}},
		{cancelled, driver.ErrLost, "claim is gone", []error{driver.ErrLost}},
		{t.Context(), late, "the store has not answered for 2s", []error{os.ErrDeadlineExceeded}},
		{t.Context(), fmt.Errorf("%w: %w", driver.ErrUnwritten, late), "the store has not answered for 2s",
			[]error{os.ErrDeadlineExceeded, driver.ErrUnwritten}},
		{t.Context(), fmt.Errorf("%w: %w", context.Canceled, errDown), "the store has not answered for 2s: connection refused",
			[]error{os.ErrDeadlineExceeded, errDown}},
		{t.Context(), fmt.Errorf("open redis://h: %w", late), "the store has not answered for 2s: open redis://h", []error{os.ErrDeadlineExceeded}},
		{cancelled, context.Canceled, "context canceled", []error{context.Canceled}},
		{cancelled, late, "context canceled", []error{context.Canceled}},
		{cancelled, fmt.Errorf("%w: %w", late, errDown), "context canceled while the store has not answered for 2s: connection refused",
			[]error{context.Canceled, os.ErrDeadlineExceeded, errDown}},
	} {
		err := silence.For(test.ctx, test.err, 2*time.Second)
		if got := fmt.Sprint(err); got != test.text {
			t.Errorf("%v: got %q, want %q", test.err, got, test.text)
		}
		for _, target := range []error{context.Canceled, late, os.ErrDeadlineExceeded, driver.ErrUnwritten, driver.ErrLost, errDown} {
			want := false
			for _, m := range test.matches {
				want = want || m == target
			}
			if errors.Is(err, target) != want {
				t.Errorf("%v matches %v: %v", err, target, !want)
			}
		}
	}
}

// The error of a client library can be found, and what net says of time-outs is true.
func TestAs(t *testing.T) {
	err := silence.Of(&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, time.Second)
	var op *net.OpError
	var timeout net.Error
	if !errors.As(err, &op) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v does not have the error of the library", err)
	}
}

func TestCut(t *testing.T) {
	if err := silence.Cut(context.Canceled, nil); err != context.Canceled {
		t.Errorf("without a failure: %v", err)
	}
	err := silence.Cut(context.Canceled, errDown)
	if err.Error() != "context canceled while the store fails: connection refused" || !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) {
		t.Errorf("with a failure: %v", err)
	}
}
