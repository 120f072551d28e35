package conditionaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// An Answer is the answer of a service to a write, and what a call then returns.
type Answer struct {
	Status int
	Code   string
	Want   error // nil: the outcome is unknown; ErrDone: the call succeeds by itself
}

// ErrDone is no error of a store. See [Answer].
var ErrDone = errors.New("done")

// Answers has a service give each answer to a write once, and expects the next attempt to succeed.
// The outcome of the write is unknown unless the service has certainly refused it. start returns
// a store whose service counts the tries of writes, and gives the answer to the first. Errors name
// the place of the record.
func Answers(t *testing.T, place string, answers []Answer, start func(t *testing.T, a Answer, tries *atomic.Int32) driver.Store) {
	for _, c := range answers {
		t.Run(fmt.Sprint(c.Status, c.Code), func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			s := start(t, c, &tries)
			g, err := s.Acquire(t.Context(), Ask("key", "id"))
			switch {
			case c.Want == ErrDone:
				if err != nil || !g.OK || tries.Load() != 2 {
					t.Errorf("%+v, %v after %d tries; want a grant after a second", g, err, tries.Load())
				}
				return
			case tries.Load() != 1:
				t.Errorf("the client sent %d writes, want one", tries.Load())
			case err == nil || c.Want != nil && !errors.Is(err, c.Want) || c.Want == nil && (errors.Is(err, driver.ErrUnwritten) || errors.Is(err, driver.ErrInvalid)):
				t.Errorf("%v, want %v", err, c.Want)
			case errors.Is(err, caslock.ErrConflict) || !strings.Contains(err.Error(), c.Code) || !strings.Contains(err.Error(), place) || strings.Contains(err.Error(), "moonlight"):
				t.Errorf("%v, want %s and %s, and no secret", err, c.Code, place)
			}
			if g, err := s.Acquire(t.Context(), Ask("key", "id")); err != nil || !g.OK {
				t.Errorf("%+v, %v after it", g, err)
			}
		})
	}
}

// Lost has the service of a store lose the answer to its next write, which may have been carried
// out: the next call finds it. writes counts the writes of the service.
func Lost(t *testing.T, s driver.Store, writes func() int, lose func()) {
	before := writes()
	lose()
	_, err := s.Acquire(t.Context(), Ask("key", "id"))
	if err == nil || errors.Is(err, driver.ErrUnwritten) || errors.Is(err, context.Canceled) {
		t.Errorf("%v, want an unknown outcome", err)
	}
	Granted(t, s, Ask("key", "id"))
	if n := writes() - before; n != 2 { // The second lets nobody take the first for a late write.
		t.Errorf("%d writes", n)
	}
}
