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
	Readers    Feature = 1 << iota // shared claims; without Readers, shared claims are ErrInvalid
	Slots                          // limits below MaxWeight; without Slots, smaller limits are ErrInvalid
	Tokens                         // fencing tokens; without Tokens, Fence is always 0
	Raise                          // tokens as requested, and raised; without Raise or Tokens a claim with Fence is ErrInvalid
	Queue                          // a waiting claim keeps its place, in FIFO order
	Tombstones                     // a late Acquire of a claim released with Late is refused
	Details                        // a refusal says Retry and Holder
	Reasons                        // the ErrLost of a broken claim is ErrBroken
	Expiry                         // a claim without renewals expires; without Expiry, Grant.TTL is 0
	Outlive                        // a claim stands until its TTL ends, even after its client is closed
	Watch                          // the store is a driver.Watcher
	Notify                         // the store is a driver.Notifier
	Inspect                        // the store is a driver.Inspector
	Roam                           // a claim is not bound to its client: a second client can request the claim again, and Leave keeps the claim; without Roam, Leave is ErrInvalid

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

// A Harness describes how to reach a store and what to expect of the store.
type Harness struct {
	// Open returns a new client of the store. All calls with the same t reach the same
	// claims, like two processes with a common server. The suite closes the client; Open
	// registers the end of everything else with t.Cleanup.
	Open func(t testing.TB) driver.Store

	// MinTTL is the shortest TTL that the store can keep. Shorter TTLs must be
	// ErrInvalid. 0 means no minimum.
	MinTTL time.Duration

	// Bubble runs every rule in a synctest bubble of its own, Open included. Everything
	// that Open starts must have ended when its cleanup returns.
	Bubble bool

	// Linked returns a new client that reaches its server, or anything else the client may
	// have to wait for, over a link of its own. Nil if a client waits for nothing.
	Linked func(t testing.TB) (driver.Store, Link)

	// Majority says that a claim is held by a majority of several nodes. A reader that waits
	// may then have the token of earlier readers on some nodes, though another reader has had
	// a larger token meanwhile.
	Majority bool

	// Newer makes the record of a held key one of the next format, as a newer release would
	// write it, and returns a function that reads the record raw. Nil if the store keeps no
	// records that another release could meet.
	Newer func(t testing.TB, key string) (record func() string)

	// Lacks lists the missing features of the store. 0 expects every feature.
	Lacks Feature
}

// A Failure is a rule that a store breaks.
type Failure struct {
	Rule  string // the subtest's name
	Words string // the sentence of the contract
	Seen  error  // the observed behaviour of the store
}

func (f Failure) String() string {
	return fmt.Sprintf("the rule: %s\nthe store: %v", f.Words, f.Seen)
}

// Run checks a store against every applicable rule, and returns when every rule has ended.
// The rules are subtests that may run in parallel.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Lacks != 0 {
		t.Logf("the store lacks %v: rules that need it are left out", h.Lacks)
	}
	// The group makes Run wait for its parallel subtests, so that a caller may stop its
	// server in a defer.
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

// Check is Run, but returns the failures instead of reporting them. It runs the rules in
// sequence: the named rules, or every rule if no name is given.
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

// A rule is one sentence of the contract, with a check that the store keeps it.
type rule struct {
	name  string
	words string
	needs Feature            // applies to stores with all of the features
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
	formatRules,
	notifyRules,
	featureRules,
	engineRules,
	keyRules,
	contextRules,
	outageRules,
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

// try runs the rule and returns how the store broke the rule, nil if the store did not.
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
