// Package oncetest checks that records keep the contract of [once.Records].
//
// Their test hands it a way to open them, and gets every sentence of the
// contract as a named subtest. A failure prints the sentence, then what was seen
// instead:
//
//	func TestRecords(t *testing.T) {
//		server := startServer(t)
//		oncetest.Run(t, oncetest.Harness{
//			Open: func(t testing.TB) once.Records { return redisonce.New(server.Client(t), nil) },
//		})
//	}
package oncetest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/once"
)

// A Harness says how to reach records.
type Harness struct {
	// Open returns a new client of the records. All calls with the same t reach
	// the same records, as two processes would that share a server. What Open
	// makes, t.Cleanup ends.
	Open func(t testing.TB) once.Records

	// Bubble runs each rule in a synctest bubble of its own, Open included.
	Bubble bool
}

// A Failure is a rule that records break.
type Failure struct {
	Rule  string // the subtest's name
	Words string // the sentence of the contract
	Seen  error  // what the records did instead
}

func (f Failure) String() string {
	return fmt.Sprintf("the rule: %s\nthe records: %v", f.Words, f.Seen)
}

// Run checks records against every rule, each in a subtest that may run in
// parallel with the others, and returns when all have ended.
func Run(t *testing.T, h Harness) {
	t.Helper()
	t.Run("rules", func(t *testing.T) {
		for _, r := range rules {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				if failure := r.try(t, h); failure != nil {
					t.Error(failure)
				}
			})
		}
	})
}

// Check is Run that returns the failures instead of reporting them. It runs one
// rule after the other; only those that are named, or all if none is.
func Check(t *testing.T, h Harness, names ...string) []Failure {
	t.Helper()
	var failures []Failure
	for _, r := range rules {
		if len(names) > 0 && !slices.Contains(names, r.name) {
			continue
		}
		if failure := r.try(t, h); failure != nil {
			failures = append(failures, *failure)
		}
	}
	return failures
}

// A rule is one sentence of the contract and a check that it is kept.
type rule struct {
	name  string
	words string
	check func(*env)
}

// rules are all rules, by topic.
var rules = slices.Concat(beginRules, finishRules, forgetRules, timeRules, keyRules, historyRules)

// try runs the rule and returns how the records broke it, nil if they did not.
func (r rule) try(t *testing.T, h Harness) *Failure {
	t.Helper()
	var seen error
	attempt := func(t *testing.T) {
		e := &env{TB: t, clients: []once.Records{h.Open(t), h.Open(t)}, key: "oncetest/" + rand.Text()}
		seen = caught(func() { r.check(e) })
	}
	if h.Bubble {
		synctest.Test(t, attempt)
	} else {
		attempt(t)
	}
	if seen == nil {
		return nil
	}
	return &Failure{Rule: r.name, Words: r.words, Seen: seen}
}
