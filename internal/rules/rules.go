// Package rules runs the rules of a contract as tests. Suites for implementers, such as
// drivertest and oncetest, bring the rules.
package rules

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// A Rule is a sentence of a contract and a check of it.
type Rule struct {
	Name  string                   // of the subtest
	Words string                   // the sentence
	Check func(t *testing.T) error // returns how the rule was broken, nil if it was kept
}

// A Failure is a broken rule.
type Failure struct {
	Rule  string // the subtest's name
	Words string // the sentence of the contract
	Seen  error  // the observed behaviour
}

func (f Failure) String() string {
	return fmt.Sprintf("the rule: %s\nseen: %v", f.Words, f.Seen)
}

// A Suite is the rules to run.
type Suite struct {
	Rules  []Rule
	Bubble bool // each rule runs in a synctest bubble of its own
}

// Run checks every rule, and returns when every rule has ended. The rules are subtests that
// may run in parallel.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	// The group makes Run wait for its parallel subtests, so that a caller may stop its
	// server in a defer.
	t.Run("rules", func(t *testing.T) {
		for _, r := range s.Rules {
			t.Run(r.Name, func(t *testing.T) {
				t.Parallel()
				if failure := s.try(t, r); failure != nil {
					t.Error(failure)
				}
			})
		}
	})
}

// Check is Run, but returns the failures instead of reporting them. It runs the rules in
// sequence: the named rules, or every rule if no name is given.
func (s Suite) Check(t *testing.T, names ...string) (failures []Failure) {
	t.Helper()
	for _, r := range s.Rules {
		if len(names) > 0 && !slices.Contains(names, r.Name) {
			continue
		}
		if failure := s.try(t, r); failure != nil {
			failures = append(failures, *failure)
		}
	}
	return failures
}

func (s Suite) try(t *testing.T, r Rule) *Failure {
	t.Helper()
	var seen error
	if s.Bubble {
		synctest.Test(t, func(t *testing.T) { seen = r.Check(t) })
	} else {
		seen = r.Check(t)
	}
	if seen == nil {
		return nil
	}
	return &Failure{Rule: r.Name, Words: r.Words, Seen: seen}
}

// broken carries what a check has found to Caught.
type broken struct{ seen error }

// Fail ends a check from deep inside.
func Fail(seen error) { panic(broken{seen}) }

// Caught runs f, and returns the error of Fail. Other panics go through.
func Caught(f func()) (seen error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case broken:
			seen = p.seen
		default:
			panic(p)
		}
	}()
	f()
	return nil
}
