package drivertest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rules"
)

// A Feature is a part of the contract that a store may lack.
type Feature uint

const (
	Readers    Feature = 1 << iota // shared claims; without Readers, shared claims are ErrInvalid
	Slots                          // limits below MaxWeight, and upgrades of readers; without Slots both are ErrInvalid
	Tokens                         // fencing tokens; without Tokens, Fence is always 0
	Raise                          // tokens as requested, and raised; without Raise or Tokens an Ask or a Renewal with Fence is ErrInvalid
	Queue                          // a waiting claim keeps its place, in FIFO order
	Crowd                          // the same, if several claims came at the same moment; without Crowd, a later claim may then pass them
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
	"Readers", "Slots", "Tokens", "Raise", "Queue", "Crowd", "Tombstones", "Details", "Reasons", "Expiry", "Outlive", "Watch", "Notify", "Inspect", "Roam",
}

// String lists the features by name, as in Readers|Slots.
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

	// Heavy says that a call takes much processor time, such as a request over HTTP for each key,
	// or the encoding of a long record. The short form of the suite then makes fewer rounds. Every
	// rule still runs, and the long form makes every round.
	Heavy bool

	// Linked returns a new client that reaches its server, or anything else the client may
	// have to wait for, over a link of its own. Nil if a client waits for nothing.
	Linked func(t testing.TB) (driver.Store, Link)

	// Newer makes the record of a held key one of the next format, as a newer release would
	// write it, and returns a function that reads the record raw. Nil if the store keeps no
	// records that another release could meet.
	Newer func(t testing.TB, key string) (record func() string)

	// Lacks lists the missing features of the store. 0 expects every feature.
	Lacks Feature
}

// A Failure is a rule that a store breaks: the name of the Rule, its Words, and what was Seen.
type Failure = rules.Failure

// Run checks a store against every applicable rule, and returns when every rule has ended.
// The rules are subtests that may run in parallel.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Lacks != 0 {
		t.Logf("the store lacks %v: rules that need it are left out", h.Lacks)
	}
	if h.Newer == nil {
		t.Log("Harness.Newer is nil: rules about records of a newer release are left out")
	}
	suite(h).Run(t)
}

// Check is Run, but returns the failures instead of reporting them. It runs the rules in
// sequence: the named rules, or every rule if no name is given.
func Check(t *testing.T, h Harness, names ...string) []Failure {
	t.Helper()
	return suite(h).Check(t, names...)
}

// A rule is one sentence of the contract, with a check that the store keeps it.
type rule struct {
	name  string
	words string
	needs Feature            // applies to stores with all of the features
	when  func(Harness) bool // nil: always
	check check
}

// A check fails if the store breaks the rule. a and b are two clients of the store.
type check func(e *env, a, b *client)

// all are all rules, by topic.
var all = slices.Concat(
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

// suite is the rules that apply to the store.
func suite(h Harness) rules.Suite {
	s := rules.Suite{Bubble: h.Bubble}
	for _, r := range all {
		if r.needs&h.Lacks != 0 || r.when != nil && !r.when(h) {
			continue
		}
		s.Rules = append(s.Rules, rules.Rule{Name: r.name, Words: r.words, Check: func(t *testing.T) error {
			return insist(t, h, r.check)
		}})
	}
	return s
}
