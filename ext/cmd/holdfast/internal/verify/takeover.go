package verify

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/history"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// startPair starts a Redis and a replica of it, behind an address that always
// leads to the one that takes writes.
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
			between.Redirect(replica.Addr()) // and what was held back is lost
			between.Blackhole(false)
			primary.Restart()
			primary, replica = replica, primary
			replica.Follow(between.Addr())
		},
	}
}

// startStandby starts a PostgreSQL and a standby, without which it acknowledges no
// commit, behind an address that always leads to the one that takes writes.
func startStandby(r *room, _ int) *engine {
	primary := servers.StartPostgres(r, "max_connections = 500", "synchronous_standby_names = 'walreceiver'") // as standbys call themselves
	standby := servers.StartStandby(r, primary)
	front := servers.StartProxy(r, primary.Addr())
	return &engine{
		url:     strings.Replace(primary.URL(), primary.Addr(), front.Addr(), 1),
		left:    func(bound time.Duration) []string { return leftInPostgres(primary, standby)(bound) }, // they change places
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

// startSentinel starts a Redis, two replicas of it, and three Sentinels, of which
// any may be harmed.
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

// roles are those of servers of which some lead the others.
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

// A member is a server of which another takes over when it is away. Harm to it is
// over when they all agree again, so that no other is harmed before.
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
