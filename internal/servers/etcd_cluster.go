package servers

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
)

// An EtcdCluster is an etcd cluster of three members.
type EtcdCluster struct {
	Nodes []*Etcd
	tb    TB
}

// StartEtcdCluster starts three members, with the options of StartEtcd, and returns when
// all members follow one leader.
func StartEtcdCluster(tb TB, options ...string) *EtcdCluster {
	tb.Helper()
	c := &EtcdCluster{tb: tb}
	var members []string
	for range 3 {
		e := prepareEtcd(tb)
		c.Nodes = append(c.Nodes, e)
		members = append(members, e.name+"="+e.peerURL())
	}
	options = append(slices.Clone(options), "--initial-cluster-token="+rand.Text())
	for _, e := range c.Nodes {
		e.start(tb, strings.Join(members, ","), options)
	}
	c.Leader()
	return c
}

// Addrs returns the addresses of the members for clients.
func (c *EtcdCluster) Addrs() (all []string) {
	for _, e := range c.Nodes {
		all = append(all, e.Addr())
	}
	return all
}

// URL returns the addresses of all members as etcd://host:port,host:port,...
func (c *EtcdCluster) URL() string { return "etcd://" + strings.Join(c.Addrs(), ",") }

// Leader returns the member that answers and that two or more members follow. The leader
// counts as a follower of itself.
func (c *EtcdCluster) Leader() (leader *Etcd) {
	c.tb.Helper()
	mustAwait(c.tb, "a leader", func() error {
		leader = c.leader()
		if leader == nil {
			return errors.New("the members do not agree on one")
		}
		return nil
	})
	return leader
}

func (c *EtcdCluster) leader() *Etcd {
	votes, members := make(map[string]int), make(map[string]*Etcd)
	for _, e := range c.Nodes {
		if s, err := e.status(); err == nil {
			votes[s.Leader]++
			members[s.Header.MemberID] = e
		}
	}
	for id, n := range votes {
		if n >= 2 && members[id] != nil {
			return members[id]
		}
	}
	return nil
}

// Followers returns the members that do not lead, running or not.
func (c *EtcdCluster) Followers() (rest []*Etcd) {
	c.tb.Helper()
	leader := c.Leader()
	for _, e := range c.Nodes {
		if e != leader {
			rest = append(rest, e)
		}
	}
	return rest
}
