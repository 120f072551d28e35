package verify

import (
	"strconv"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// readers are the tokens of readers alone, a part of [check.Growing].
const readers check.Promise = "tokens of readers"

// overlap lists the promises that fail together when a store forgets a lock, or ends a lock
// early. A second process may then acquire the key while the first holder does not know. So
// a holder may begin an effect if it looked at the records before the second holder had a
// result.
var overlap = []check.Promise{check.Exclusive, check.Told, check.Single}

// stale lists the promises that fail with a server that has missed the latest grants. For
// the server, earlier readers may still be readers, and a reader who joins shares their
// token. The shared token is older than the token of a writer who came and went meanwhile.
// Every other lock gets a token of the clock, which is past every token of the replaced
// servers: in a run, the servers have the same clock, unless a fault sets the clock.
var stale = append([]check.Promise{readers}, overlap...)

// waivers lists the promises that a store does not make, by URL scheme. The store makes
// every promise that is not listed. docs/guarantees.md has the reasons.
var waivers = map[string]map[plan.Nemesis][]check.Promise{
	"redis":     {plan.Failover: stale, plan.StaleFailover: stale, plan.Clock: overlap, plan.Evict: overlap, plan.Flush: overlap},
	"redlock":   {plan.Clock: overlap, plan.Evict: overlap, plan.Flush: overlap},
	"memcached": {plan.Restart: overlap, plan.KillStore: overlap, plan.PauseStore: overlap, plan.Evict: overlap, plan.Flush: overlap},
	"postgres":  {plan.Clock: overlap},
	"mysql":     {plan.Clock: overlap},
	"sqlserver": {plan.Clock: overlap},
}

// forgetting lists the nemeses after which a store may have forgotten its tokens, by URL
// scheme. The store counts on from the time of its clock. So tokens go back if a fault sets
// the clock in the same run.
var forgetting = map[string][]plan.Nemesis{
	"redis":   {plan.Evict, plan.Flush},
	"redlock": {plan.Restart, plan.KillStore, plan.Evict, plan.Flush},
}

// electionWaivers are the waivers of servers that replace failed servers by themselves, by
// the name for --start. A server that was only slow may be replaced too, and may meanwhile
// have granted locks that the replica does not know.
var electionWaivers = map[string]map[plan.Nemesis][]check.Promise{
	"redis-sentinel": {plan.KillStore: stale, plan.PauseStore: stale, plan.Failover: stale, plan.SwitchOver: stale},
	"redis-cluster":  {plan.KillStore: stale, plan.PauseStore: stale, plan.Failover: stale},
}

// sessionWaivers are the waivers of locks that end with the sessions of a server.
var sessionWaivers = map[plan.Nemesis][]check.Promise{plan.Restart: overlap, plan.KillStore: overlap}

// waived returns the promises that the store does not make for a nemesis.
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

// confirmed reports whether the only replica has every granted lock.
func (t *target) confirmed() bool {
	wait, err := strconv.Atoi(t.url.Query().Get("wait"))
	return t.starter.name == "redis:2" && err == nil && wait > 0
}
