package drivertest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/rules"
)

// A doubt is a finding that may be the fault of a slow machine: a call had no answer, or a
// claim has expired too early.
type doubt struct{ error }

// Unwrap shows the finding itself, so that a failure prints it without the doubt.
func (d doubt) Unwrap() error { return d.error }

// insist makes attempts, five at most, until an attempt leaves no doubt. A disturbance,
// such as the election of a leader, may take a while to pass.
func insist(tb testing.TB, h Harness, c check) error {
	for tries := 0; ; tries++ {
		seen := attempt(tb, h, tries, func(e *env) { c(e, e.client(), e.client()) })
		if h.Bubble || tries == 4 || !errors.As(seen, new(doubt)) {
			return seen
		}
		tb.Logf("attempt %d: %v", tries+1, seen)
		<-time.After(time.Second << tries)
	}
}

// attempt runs steps with an env of their own and returns how the rule was broken. Other
// panics go through.
func attempt(tb testing.TB, h Harness, tries int, steps func(*env)) (seen error) {
	e := &env{tb: tb, harness: h, key: "drivertest/" + strings.ToLower(rand.Text()), tries: tries}
	defer func() {
		for _, store := range e.opened {
			if err := store.Close(); err != nil && seen == nil {
				seen = fmt.Errorf("a client did not close: %w", err)
			}
		}
	}()
	return rules.Caught(func() { steps(e) })
}

// failf ends the check: the store broke the rule, and the arguments say how.
func (e *env) failf(format string, args ...any) {
	e.fail(!slices.ContainsFunc(args, noAnswer), format, args...)
}

// fail is failf for a finding that is certain, or not.
func (e *env) fail(certain bool, format string, args ...any) {
	seen := fmt.Errorf(format, args...)
	if line := step(); line != "" {
		seen = fmt.Errorf("%w (%s)", seen, line)
	}
	if !certain {
		seen = doubt{seen}
	}
	rules.Fail(seen)
}

// step is the line of the running check. Checks are functions, the calls of clients are
// methods: so step finds the check.
func step() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		name, ours := strings.CutPrefix(path.Base(frame.Function), "drivertest.")
		if ours && !strings.Contains(name, "(") {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
