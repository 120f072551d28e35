// Package silence decides which limit was over when a store has not answered: the limit of
// the caller, or of this module or a client library.
//
// Callers act on the error of their own context. So an error matches the context's error
// only if the caller's context has ended, and then the error also says how the store
// failed. An error of every other limit matches [os.ErrDeadlineExceeded].
package silence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// An unanswered error is the error of a store that has not answered in time.
type unanswered struct {
	err  error
	time time.Duration
}

// Of returns the error of a call to a store for a caller whose context has not ended.
// waited is for how long the store has not answered, 0 if unknown.
func Of(err error, waited time.Duration) error {
	if err == nil || !timely(err) {
		return err
	}
	return &unanswered{err, waited}
}

// For is Of for a caller whose context may have ended. If the context has ended, the error
// matches the context's error, unless err is an answer of the store.
func For(ctx context.Context, err error, waited time.Duration) error {
	if err == nil {
		return nil
	}
	cause := Ended(ctx)
	switch {
	case cause == nil || !timely(err):
		return Of(err, waited)
	case Words(err) == "":
		return cause
	}
	return Cut(cause, Of(err, waited))
}

// Ended returns the error of a context that has ended, or whose deadline has passed, nil if
// the context goes on. A connection has the same deadline, and may notice the end first.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// timely reports whether an error matches the error of a context.
func timely(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (e *unanswered) Error() string {
	text := "the store has not answered"
	if e.time > 0 {
		text += fmt.Sprintf(" for %v", e.time.Round(time.Millisecond))
	}
	if words := Words(e.err); words != "" {
		text += ": " + words
	}
	return text
}

// Timeout reports true, as in [net.Error].
func (e *unanswered) Timeout() bool { return true }

// Is hides the end of a context that the caller does not know.
func (e *unanswered) Is(target error) bool {
	switch target {
	case os.ErrDeadlineExceeded:
		return true
	case context.DeadlineExceeded, context.Canceled:
		return false
	}
	return errors.Is(e.err, target)
}

// As finds the error of a client library.
func (e *unanswered) As(target any) bool { return errors.As(e.err, target) }

// Words returns the text of a store's error without the text of a context's error, "" for
// nothing.
func Words(err error) string {
	text := err.Error()
	for _, known := range []error{driver.ErrUnwritten, context.DeadlineExceeded, context.Canceled} {
		text = strings.TrimPrefix(strings.TrimPrefix(text, known.Error()), ": ")
		text = strings.TrimSuffix(text, ": "+known.Error())
	}
	return text
}

// Cut returns the error of a call that was ended by cause, the error of its caller's
// context, while the store failed: err of [Of] is the last failure, nil without a failure.
func Cut(cause, err error) error {
	if err == nil {
		return cause
	}
	return fmt.Errorf("%w while %w", cause, failing(err))
}

// failing returns an error as part of a sentence about the store.
func failing(err error) error {
	if _, ok := err.(*unanswered); ok {
		return err
	}
	return fmt.Errorf("the store fails: %w", err)
}
