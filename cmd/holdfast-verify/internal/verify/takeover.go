package verify

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// startPair starts a Redis and a replica behind an address that always leads to the
// writable server.
func startPair(r *room, _ int) *engine {
	primary := servers.StartRedis(r, durable...)
	between := servers.StartProxy(r, primary.Addr())
	replica := servers.StartReplica(r, between.Addr(), durable...)
	front := servers.StartProxy(r, primary.Addr())
	return &engine{
		url:  "redis://" + front.Addr(),
		left: leftInRedis(primary, replica), version: primary.Version(),
		cut: func(_ int, on bool) { between.Blackhole(on) },
		failover: func(int) {
			primary.Kill()
			replica.Promote()
			front.Redirect(replica.Addr())
			between.Redirect(replica.Addr()) // discards the data that was held back
			between.Blackhole(false)
			primary.Restart()
			primary, replica = replica, primary
			replica.Follow(between.Addr())
		},
	}
}

// startStandby starts a PostgreSQL and a standby behind an address that always leads to the
// writable server. The primary acknowledges no commit without the standby.
func startStandby(r *room, _ int) *engine {
	primary := servers.StartPostgres(r, "max_connections = 500", "synchronous_standby_names = 'walreceiver'") // the name that standbys use
	standby := servers.StartStandby(r, primary)
	front := servers.StartProxy(r, primary.Addr())
	return &engine{
		url:     strings.Replace(primary.URL(), primary.Addr(), front.Addr(), 1),
		left:    func(bound time.Duration) []string { return leftInPostgres(primary, standby)(bound) }, // the servers change places
		version: primary.Version(),
		failover: func(int) {
			primary.Kill()
			standby.Promote()
			front.Redirect(standby.Addr())
			primary, standby = standby, primary
			standby.Follow(primary)
		},
	}
}

// startSentinel starts a Redis, two replicas, and three Sentinels. Each server may be
// harmed.
func startSentinel(r *room, _ int) *engine {
	s := servers.StartSentinel(r, durable...)
	return &engine{
		url:   "redis://" + strings.Join(s.Addrs(), ",") + "?master=" + servers.MasterName,
		nodes: members(slices.Concat(s.Nodes, s.Sentinels), s.AwaitSettled),
		roles: func() []string {
			return append(roles(s.Nodes, s.Primary()), slices.Repeat([]string{history.Sentinel}, len(s.Sentinels))...)
		},
		left: leftInRedis(slices.Concat(s.Nodes, s.Sentinels)...), version: s.Nodes[0].Version(),
		failover: func(int) {
			primary := s.Primary()
			primary.Kill()
			s.Primary()
			primary.Restart()
			s.AwaitSettled()
		},
		switchOver: func(int) { s.Failover() },
	}
}

// startCluster starts a Redis Cluster.
func startCluster(r *room, _ int) *engine {
	c := servers.StartCluster(r, durable...)
	slot := func(n int) int { return c.Slot(strconv.Itoa(n)) }
	return &engine{
		url:   "redis://" + strings.Join(c.Addrs(), ","),
		nodes: members(c.Nodes, c.AwaitSettled),
		roles: func() []string { return roles(c.Nodes, c.Primaries()...) },
		left:  leftInRedis(c.Nodes...), version: c.Nodes[0].Version(),
		failover: func(n int) {
			primary := c.Owner(slot(n))
			primary.Kill()
			c.Owner(slot(n))
			primary.Restart()
			c.AwaitSettled()
		},
		switchOver: func(n int) { c.Failover(c.Owner(slot(n))) },
	}
}

// roles returns the roles of servers. Servers in leading are primaries, the rest replicas.
func roles(all []*servers.Redis, leading ...*servers.Redis) (names []string) {
	for _, r := range all {
		if slices.Contains(leading, r) {
			names = append(names, history.Primary)
		} else {
			names = append(names, history.Replica)
		}
	}
	return names
}

// A member is a server with a replacement for the time of its absence. A fault of a member
// is over when the servers agree again. No other server is harmed before.
type member struct {
	*servers.Redis
	settle func()
}

func members(all []*servers.Redis, settle func()) (nodes []node) {
	for _, r := range all {
		nodes = append(nodes, member{r, settle})
	}
	return nodes
}

func (m member) Restart() {
	m.Redis.Restart()
	m.settle()
}

func (m member) Resume() {
	m.Redis.Resume()
	m.settle()
}
