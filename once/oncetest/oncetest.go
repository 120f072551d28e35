// Package oncetest checks that an implementation of [once.Records] keeps the contract.
//
// A test passes a function that opens the records. Every sentence of the contract runs
// as a named subtest. A failure prints the sentence, then the observed behaviour:
//
//	func TestRecords(t *testing.T) {
//		server := startServer(t)
//		oncetest.Run(t, oncetest.Harness{
//			Open: func(t testing.TB) once.Records { return redisonce.New(server.Client(t), nil) },
//		})
//	}
//
// Random calls depend on a seed, which the log of a failed test shows. Set
// HOLDFAST_TEST_SEED to the seed to make the same calls again.
package oncetest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/once"
)

// A Harness opens the records under test.
type Harness struct {
	// Open returns a new client of the records. Calls with the same t reach the same
	// records, like two processes that share a server. Open registers its cleanup with
	// t.Cleanup.
	Open func(t testing.TB) once.Records

	// Bubble runs every rule, Open included, in a separate synctest bubble.
	Bubble bool
}

// A Failure is a rule that the records break.
type Failure struct {
	Rule  string // the subtest's name
	Words string // the sentence of the contract
	Seen  error  // the observed behaviour
}

func (f Failure) String() string {
	return fmt.Sprintf("the rule: %s\nthe records: %v", f.Words, f.Seen)
}

// Run checks the records against every rule, and returns when every rule has ended.
// Every rule runs in a subtest, possibly in parallel with other rules.
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

// Check is Run, but returns the failures instead of reporting them. Check runs the
// rules one after another: only the rules in names, or every rule if names is empty.
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

// A rule is a sentence of the contract and a check for it.
type rule struct {
	name  string
	words string
	check func(*env)
}

// rules are all rules, by topic.
var rules = slices.Concat(beginRules, finishRules, forgetRules, timeRules, keyRules, historyRules)

// try runs the rule and returns the failure, or nil if the records keep the rule.
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
