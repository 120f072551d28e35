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
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/rules"
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

// A Failure is a rule that the records break: the name of the Rule, its Words, and what was
// Seen.
type Failure = rules.Failure

// Run checks the records against every rule, and returns when every rule has ended.
// Every rule runs in a subtest, possibly in parallel with other rules.
func Run(t *testing.T, h Harness) {
	t.Helper()
	suite(h).Run(t)
}

// Check is Run, but returns the failures instead of reporting them. Check runs the
// rules one after another: only the rules in names, or every rule if names is empty.
func Check(t *testing.T, h Harness, names ...string) []Failure {
	t.Helper()
	return suite(h).Check(t, names...)
}

// A rule is a sentence of the contract and a check for it.
type rule struct {
	name  string
	words string
	check func(*env)
}

// all are all rules, by topic.
var all = slices.Concat(beginRules, finishRules, forgetRules, timeRules, keyRules, historyRules)

func suite(h Harness) rules.Suite {
	s := rules.Suite{Bubble: h.Bubble}
	for _, r := range all {
		s.Rules = append(s.Rules, rules.Rule{Name: r.name, Words: r.words, Check: func(t *testing.T) error {
			e := &env{TB: t, clients: []once.Records{h.Open(t), h.Open(t)}, key: "oncetest/" + rand.Text()}
			return rules.Caught(func() { r.check(e) })
		}})
	}
	return s
}
