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
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/internal/wallclock"
)

// A doubt is a finding that may not be the fault of the store: a call had no answer, or a call
// was late or the wall clock was set, so that a claim may have expired.
type doubt struct {
	error
	late bool // every call had an answer
}

// Unwrap shows the finding itself, so that a failure prints it without the doubt.
func (d doubt) Unwrap() error { return d.error }

// certainty is 3 for a finding that is certain, 2 if a call had no answer, 1 if a call was late, and
// 0 for none.
func certainty(seen error) int {
	switch {
	case seen == nil:
		return 0
	case unknown(seen):
		return 2
	case errors.As(seen, new(doubt)):
		return 1
	}
	return 3
}

// unknown reports whether a finding is in doubt because a call had no answer.
func unknown(seen error) bool {
	var d doubt
	return errors.As(seen, &d) && !d.late
}

// tries counts the tries of a rule that failed and could not be judged.
type tries struct {
	failed int
	last   error // what the latest of them saw
}

func (t *tries) add(seen error) {
	t.failed++
	t.last = seen
}

func (t *tries) String() string {
	return fmt.Sprintf("in %d of the tries of this rule a call was late or had no answer, or the clock was set, and the last of these saw: %v", t.failed, t.last)
}

// insist makes attempts, five at most, until an attempt leaves no doubt. A disturbance,
// such as the election of a leader, may take a while to pass. If the last attempt had calls
// without an answer, the rule is broken. If the last attempt was only late, or the clock was set, the
// test of the rule is skipped.
func insist(tb testing.TB, h Harness, c check) error {
	tb.Helper()
	t := new(tries)
	for n := 1; ; n++ {
		seen := attempt(tb, h, t, func(e *env) { c(e, e.client(), e.client()) })
		doubted := errors.As(seen, new(doubt))
		if h.Bubble || !doubted || n == 5 && unknown(seen) {
			if t.failed > 0 {
				unproved.Logf(tb, "%v", t)
			}
			return seen
		}
		if t.add(seen); n == 5 {
			unproved.Skipf(tb, "no try was in time: %v", t)
			return nil
		}
		<-time.After(time.Second << (n - 1))
	}
}

// attempt runs steps with an env of their own and returns how the rule was broken. Other
// panics go through.
func attempt(tb testing.TB, h Harness, t *tries, steps func(*env)) (seen error) {
	e := &env{tb: tb, harness: h, key: "drivertest/" + strings.ToLower(rand.Text()), tries: t}
	defer func() {
		for _, store := range e.opened {
			if err := store.Close(); err != nil && seen == nil {
				seen = fmt.Errorf("a client did not close: %w", err)
			}
		}
	}()
	began := time.Now()
	seen = rules.Caught(func() { steps(e) })
	if certainty(seen) == 3 && wallclock.SetBy(began) != 0 {
		seen = doubt{error: seen, late: true}
	}
	return seen
}

// failf ends the check: the store broke the rule, and the arguments say how. If one of them is
// an error that leaves the outcome of a call open, the finding is in doubt.
func (e *env) failf(format string, args ...any) { e.fail(true, format, args...) }

// fail is failf for a finding that is also in doubt if a call was not in time.
func (e *env) fail(inTime bool, format string, args ...any) {
	open := slices.ContainsFunc(args, noAnswer)
	seen := fmt.Errorf(format, args...)
	if line := step(); line != "" {
		seen = fmt.Errorf("%w (%s)", seen, line)
	}
	if open || !inTime {
		seen = doubt{error: seen, late: !open}
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
