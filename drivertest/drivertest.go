package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Feature is a part of the contract that a store may lack.
type Feature uint

const (
	Readers    Feature = 1 << iota // shared claims; without it they are ErrInvalid
	Slots                          // limits below MaxWeight; without it they are ErrInvalid
	Tokens                         // fencing tokens; without it Fence is always 0
	Raise                          // tokens as asked for, and raised; without it, or Tokens, a claim with Fence is ErrInvalid
	Queue                          // a waiting claim keeps its place: first come, first served
	Tombstones                     // a late Acquire of a claim that was released with Late is refused
	Details                        // a refusal says Retry and Holder
	Reasons                        // the ErrLost of a broken claim is ErrBroken
	Expiry                         // a claim that is not renewed runs out; without it Grant.TTL is 0
	Outlive                        // a claim stands until its TTL ends though its client is closed
	Watch                          // the store is a driver.Watcher
	Notify                         // the store is a driver.Notifier
	Inspect                        // the store is a driver.Inspector
	Roam                           // a claim is not bound to its client: another can ask for it again, and Leave keeps it; without it Leave is ErrInvalid

	end
)

var featureNames = []string{
	"Readers", "Slots", "Tokens", "Raise", "Queue", "Tombstones", "Details", "Reasons", "Expiry", "Outlive", "Watch", "Notify", "Inspect", "Roam",
}

func (f Feature) String() string {
	var names []string
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// A Harness says how to reach a store and what to expect of it.
type Harness struct {
	// Open returns a new client of the store. All calls with the same t reach
	// the same claims, as two processes would that share a server. The suite
	// closes the client; whatever else Open makes, t.Cleanup ends.
	Open func(t testing.TB) driver.Store

	// MinTTL is the shortest TTL that the store can keep. Shorter ones must be
	// ErrInvalid. 0 says that there is none.
	MinTTL time.Duration

	// Bubble runs each rule in a synctest bubble of its own, Open included.
	// Everything that Open starts has ended when its cleanup has.
	Bubble bool

	// Lacks lists what the store cannot do. 0 expects all of it.
	Lacks Feature
}

// A Failure is a rule that a store breaks.
type Failure struct {
	Rule  string // the subtest's name
	Words string // the sentence of the contract
	Seen  error  // what the store did instead
}

func (f Failure) String() string {
	return fmt.Sprintf("the rule: %s\nthe store: %v", f.Words, f.Seen)
}

// Run checks a store against every rule that applies to it, each in a subtest
// that may run in parallel with the others, and returns when all have ended.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Lacks != 0 {
		t.Logf("the store lacks %v: rules that need it are left out", h.Lacks)
	}
	// The group makes Run wait for its parallel subtests, so that a caller may
	// stop its server in a defer.
	t.Run("rules", func(t *testing.T) {
		for _, r := range applicable(h) {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				if failure := r.try(t, h); failure != nil {
					t.Error(failure)
				}
			})
		}
	})
}

// Check is Run that returns the failures instead of reporting them. It runs
// one rule after the other; only those that are named, or all if none is.
func Check(t *testing.T, h Harness, names ...string) []Failure {
	t.Helper()
	var failures []Failure
	for _, r := range applicable(h) {
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
	needs Feature            // applies to stores that have all of these
	when  func(Harness) bool // nil: always
	check func(*env)
}

// rules are all rules, by topic.
var rules = slices.Concat(
	acquireRules,
	weightRules,
	renewRules,
	releaseRules,
	lateRules,
	ttlRules,
	leaveRules,
	tokenRules,
	raiseRules,
	queueRules,
	placeRules,
	watchRules,
	pushRules,
	inspectRules,
	breakRules,
	notifyRules,
	featureRules,
	engineRules,
	keyRules,
	contextRules,
	closeRules,
	batchRules,
	togetherRules,
	historyRules,
)

func applicable(h Harness) []rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r rule) bool {
		return r.needs&h.Lacks != 0 || r.when != nil && !r.when(h)
	})
}

// try runs the rule and returns how the store broke it, nil if it did not.
func (r rule) try(t *testing.T, h Harness) *Failure {
	t.Helper()
	var seen error
	if h.Bubble {
		synctest.Test(t, func(t *testing.T) { seen = insist(t, h, r.check) })
	} else {
		seen = insist(t, h, r.check)
	}
	if seen == nil {
		return nil
	}
	return &Failure{Rule: r.name, Words: r.words, Seen: seen}
}
