package servers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const slots = 16384

// nodeTimeout is how long a primary may be silent, in milliseconds.
const nodeTimeout = "2000"

// A Cluster is three primaries and three replicas.
type Cluster struct {
	Nodes []*Redis // three servers started as primaries, then a replica of each
	ids   map[*Redis]string
	tb    TB
}

// StartCluster starts a cluster whose nodes have the given options, as in StartRedis. If a
// primary does not answer for two seconds, the replica replaces the primary.
func StartCluster(tb TB, options ...string) *Cluster {
	tb.Helper()
	NeedRedis7(tb)
	c := &Cluster{tb: tb, ids: make(map[*Redis]string)}
	buses := make(map[*Redis]int)
	for range 6 {
		r, bus := startNode(tb, options)
		c.Nodes = append(c.Nodes, r)
		c.ids[r], _ = r.Must("CLUSTER", "MYID").(string)
		buses[r] = bus
	}
	primaries := c.Nodes[:3]
	for i, r := range primaries {
		r.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1))
	}
	meet := func(other *Redis) []string {
		return []string{"CLUSTER", "MEET", loopback, strconv.Itoa(other.port), strconv.Itoa(buses[other])}
	}
	for i, r := range c.Nodes {
		r.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		for _, other := range c.Nodes[:i] { // waiting for gossip would take seconds
			r.Must(meet(other)...)
		}
	}
	for _, r := range c.Nodes {
		for _, other := range others(c.Nodes, r) {
			Await(tb, "a node to know the remaining nodes", func() error {
				known, err := r.do(glance, "CLUSTER", "NODES")
				if err != nil || strings.Contains(fmt.Sprint(known), c.ids[other]) {
					return err
				}
				// A node drops a handshake that takes longer than the timeout of the nodes.
				_, err = r.do(glance, meet(other)...)
				return errors.Join(fmt.Errorf("%s does not know %s", r.Addr(), other.Addr()), err)
			})
		}
	}
	for i, r := range c.Nodes[3:] {
		Await(tb, "a node to know its primary", func() error {
			_, err := r.do(glance, "CLUSTER", "REPLICATE", c.ids[primaries[i]])
			return err
		})
	}
	c.AwaitSettled()
	return c
}

// Calm keeps the replicas from replacing a primary that does not answer on a busy machine.
// The nodes still obey Failover.
func (c *Cluster) Calm() *Cluster {
	c.tb.Helper()
	for _, r := range c.Nodes {
		r.set("cluster-node-timeout", "60000")
	}
	return c
}

// startNode starts a server that may join a cluster, and returns the bus port for the
// remaining nodes.
func startNode(tb TB, options []string) (r *Redis, bus int) {
	tb.Helper()
	r = &Redis{}
	r.Process = start(tb, program{
		name: "cluster node",
		path: redisBinary(tb),
		setup: func(tb TB, dir string) ([]string, error) {
			bus = reserve(tb)
			return r.configure(tb, dir, inMemory, []string{
				"cluster-enabled yes",
				"cluster-port " + strconv.Itoa(bus),
				"cluster-node-timeout " + nodeTimeout,
				"cluster-allow-replica-migration no", // each primary keeps its replica
				"cluster-replica-validity-factor 0",  // after elections that a busy machine has spoiled, too
			}, options)
		},
		ready: r.ready,
	})
	return r, bus
}

// Addrs returns the addresses of the nodes.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

// AwaitSettled returns when all nodes agree on the primary of each slot. All nodes must
// run.
func (c *Cluster) AwaitSettled() {
	c.tb.Helper()
	Await(c.tb, "the cluster", c.settled)
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	for _, r := range c.Nodes {
		if reply, err := r.do(glance, "CLUSTER", "KEYSLOT", key); err == nil {
			slot, _ := reply.(int64)
			return int(slot)
		}
	}
	c.tb.Fatalf("no node tells the slot of %q", key)
	return 0
}

// Owner returns the primary that serves a slot. Owner waits until all nodes that answer
// name the same primary, and the primary takes writes. After a primary was killed or
// paused, Owner returns the replacement.
func (c *Cluster) Owner(slot int) *Redis {
	c.tb.Helper()
	return awaited(c.tb, "an owner of slot "+strconv.Itoa(slot), func() (*Redis, error) { return c.owner(slot) })
}

// Primaries returns the nodes that serve slots, when all nodes that answer agree.
func (c *Cluster) Primaries() []*Redis {
	c.tb.Helper()
	return awaited(c.tb, "the primaries", c.primaries)
}

// Replica returns the replica of a primary.
func (c *Cluster) Replica(primary *Redis) *Redis {
	c.tb.Helper()
	return awaited(c.tb, "a replica of "+primary.Addr(), func() (*Redis, error) {
		for _, r := range others(c.Nodes, primary) {
			if port, err := r.replication("master_port"); err == nil && port == strconv.Itoa(primary.port) {
				return r, r.linked()
			}
		}
		return nil, errors.New("there is none")
	})
}

// Failover makes a primary and its replica change places without loss, and returns the new
// primary when all nodes know the change.
func (c *Cluster) Failover(primary *Redis) *Redis {
	c.tb.Helper()
	const giveUp = 5 * time.Second // then a node drops the order, unless the order was carried out
	c.AwaitSettled()               // or a primary may deny its vote, and a calm node asks again after minutes
	replica := c.Replica(primary)
	var ordered time.Time
	Await(c.tb, "the failover", func() error {
		err := replica.leads()
		if err == nil {
			return c.settled()
		}
		if time.Since(ordered) > giveUp {
			if _, err := replica.do(glance, "CLUSTER", "FAILOVER"); err != nil {
				return err
			}
			ordered = time.Now()
		}
		return err
	})
	return replica
}

// Migrate moves a slot to a new primary, with all keys, while the cluster serves the slot.
func (c *Cluster) Migrate(slot int, to *Redis) {
	c.tb.Helper()
	m := c.BeginMigration(slot, to)
	m.MoveKeys()
	m.End()
}

// owner returns the primary that all answering nodes name.
func (c *Cluster) owner(slot int) (owner *Redis, err error) {
	named := make(map[string]int)
	for _, r := range c.Nodes {
		if owners, err := r.owners(); err == nil {
			named[owners.of(slot)]++
		}
	}
	for _, r := range c.Nodes {
		if len(named) == 1 && named[c.ids[r]] > 0 {
			return r, r.serves()
		}
	}
	return nil, fmt.Errorf("named are %v", named)
}

// primaries returns the primaries that all answering nodes name.
func (c *Cluster) primaries() (primaries []*Redis, err error) {
	var named owners
	for _, r := range c.Nodes {
		owners, err := r.owners()
		if err != nil {
			continue // the node may be down
		}
		if named == nil {
			named = owners
		}
		if !slices.EqualFunc(owners, named, ownership.names) {
			return nil, fmt.Errorf("%s names other owners than the nodes before it", r.Addr())
		}
	}
	for _, r := range c.Nodes {
		if slices.ContainsFunc(named, func(o ownership) bool { return o.id == c.ids[r] }) {
			primaries = append(primaries, r)
		}
	}
	if primaries == nil {
		return nil, errors.New("nobody names any")
	}
	return primaries, nil
}

// An ownership is a range of slots, from the first to the last, and the id of the
// primary that serves the range.
type ownership struct {
	first, last int
	id          string
	replicas    int
}

// names reports whether two nodes name the same primary for a range.
func (o ownership) names(p ownership) bool {
	o.replicas, p.replicas = 0, 0
	return o == p
}

// owners are the ownerships of all slots, in the order of the slots.
type owners []ownership

// of returns the id of the primary of a slot, "" if the slot has none.
func (all owners) of(slot int) string {
	for _, o := range all {
		if o.first <= slot && slot <= o.last {
			return o.id
		}
	}
	return ""
}

// owners returns the owners as seen by one node.
func (r *Redis) owners() (all owners, err error) {
	reply, err := r.do(glance, "CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	ranges, _ := reply.([]any)
	for _, one := range ranges {
		fields, _ := one.([]any)
		if len(fields) < 3 {
			return nil, fmt.Errorf("slots %v without an owner", fields)
		}
		first, _ := fields[0].(int64)
		last, _ := fields[1].(int64)
		node, _ := fields[2].([]any)
		if first < 0 || last >= slots || len(node) < 3 {
			return nil, fmt.Errorf("slots %v make no sense", fields)
		}
		id, _ := node[2].(string)
		all = append(all, ownership{int(first), int(last), id, len(fields) - 3})
	}
	slices.SortFunc(all, func(a, b ownership) int { return a.first - b.first })
	return all, nil
}

// serves returns nil if a node takes writes, and sees a cluster that is up.
func (r *Redis) serves() error {
	if err := r.leads(); err != nil {
		return err
	}
	_, err := r.clusterUp()
	return err
}

// clusterUp returns CLUSTER INFO of a node, and an error unless it sees a cluster that is up.
func (r *Redis) clusterUp() (info string, err error) {
	reply, err := r.do(glance, "CLUSTER", "INFO")
	info, _ = reply.(string)
	if err == nil && field(info, "cluster_state") != "ok" {
		err = fmt.Errorf("%s sees %s", r.Addr(), strings.ReplaceAll(info, "\r\n", " "))
	}
	return info, err
}

// settled returns nil when all nodes are up, agree on the primary of each slot, and know its
// replica.
func (c *Cluster) settled() error {
	var first owners
	for _, r := range c.Nodes {
		info, err := r.clusterUp()
		if err != nil {
			return err
		}
		if known := field(info, "cluster_known_nodes"); known != "6" {
			return fmt.Errorf("%s knows %s nodes", r.Addr(), known)
		}
		owners, err := r.owners()
		if err != nil {
			return err
		}
		if first == nil {
			first = owners
		}
		if !slices.EqualFunc(owners, first, ownership.names) {
			return fmt.Errorf("%s names other owners than %s", r.Addr(), c.Nodes[0].Addr())
		}
		if i := slices.IndexFunc(owners, func(o ownership) bool { return o.replicas == 0 }); i >= 0 {
			return fmt.Errorf("%s knows no replica for slot %d", r.Addr(), owners[i].first)
		}
		if r.leads() != nil {
			if err := r.linked(); err != nil {
				return err
			}
		}
	}
	return nil
}
