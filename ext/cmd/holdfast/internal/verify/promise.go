package verify

import (
	"strconv"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// readers are the tokens of readers alone, of [check.Growing].
const readers check.Promise = "tokens of readers"

// overlap are the promises that fail together when a store forgets a lock, or
// ends it early: another may get the key while the first holder does not know. So an
// effect may be begun by one whose look at the records was before the other's result.
var overlap = []check.Promise{check.Exclusive, check.Told, check.Single}

// stale are those of a server that has missed what was granted last. Readers
// who were there before may still be so for it, and whoever joins them shares their
// token, which is older than that of a writer who came and went meanwhile. All others
// get tokens of the clock, which is past all that the servers that have gone had given:
// in a run all of them have the same clock, unless that is set.
var stale = append([]check.Promise{readers}, overlap...)

// waivers says what a store does not promise, by its scheme. All else it
// promises. docs/guarantees.md has the reasons.
var waivers = map[string]map[plan.Nemesis][]check.Promise{
	"redis":     {plan.Failover: stale, plan.StaleFailover: stale, plan.Clock: overlap, plan.Evict: overlap, plan.Flush: overlap},
	"redlock":   {plan.Clock: overlap, plan.Evict: overlap, plan.Flush: overlap},
	"memcached": {plan.Restart: overlap, plan.KillStore: overlap, plan.PauseStore: overlap, plan.Evict: overlap, plan.Flush: overlap},
	"postgres":  {plan.Clock: overlap},
	"mysql":     {plan.Clock: overlap},
}

// forgetting are the nemeses after which a store may have forgotten the tokens that
// it has given, by its scheme. It counts on from the time of its clock, so that tokens
// go back if the clock by which they were given is set in the same run.
var forgetting = map[string][]plan.Nemesis{
	"redis":   {plan.Evict, plan.Flush},
	"redlock": {plan.Restart, plan.KillStore, plan.Evict, plan.Flush},
}

// electionWaivers are those of servers that replace each other by themselves, by what
// --start calls them. One that was only slow may be replaced too, and has granted locks
// meanwhile of which its replica knows nothing.
var electionWaivers = map[string]map[plan.Nemesis][]check.Promise{
	"redis-sentinel": {plan.KillStore: stale, plan.PauseStore: stale, plan.Failover: stale, plan.SwitchOver: stale},
	"redis-cluster":  {plan.KillStore: stale, plan.PauseStore: stale, plan.Failover: stale},
}

// sessionWaivers are those of locks that end with the sessions of a server.
var sessionWaivers = map[plan.Nemesis][]check.Promise{plan.Restart: overlap, plan.KillStore: overlap}

// waived are the promises that the store does not make for a nemesis.
func (t *target) waived(n plan.Nemesis) []check.Promise {
	if t.sessions() {
		return sessionWaivers[n]
	}
	if own := electionWaivers[t.starter.name]; own != nil {
		return own[n]
	}
	if (n == plan.Failover || n == plan.StaleFailover) && t.confirmed() {
		return nil
	}
	return waivers[t.url.Scheme][n]
}

// confirmed reports whether the only replica has all that was granted.
func (t *target) confirmed() bool {
	wait, err := strconv.Atoi(t.url.Query().Get("wait"))
	return t.starter.name == "redis:2" && err == nil && wait > 0
}
