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
func (c *EtcdCluster) Addrs() []string { return addrs(c.Nodes) }

// URL returns the addresses of all members as etcd://host:port,host:port,...
func (c *EtcdCluster) URL() string { return "etcd://" + strings.Join(c.Addrs(), ",") }

// Leader returns the member that answers and that two or more members follow. The leader
// counts as a follower of itself.
func (c *EtcdCluster) Leader() *Etcd {
	c.tb.Helper()
	return awaited(c.tb, "a leader", c.leader)
}

func (c *EtcdCluster) leader() (*Etcd, error) {
	votes, members := make(map[string]int), make(map[string]*Etcd)
	for _, e := range c.Nodes {
		if s, err := e.status(); err == nil {
			votes[s.Leader]++
			members[s.Header.MemberID] = e
		}
	}
	for id, n := range votes {
		if n >= 2 && members[id] != nil {
			return members[id], nil
		}
	}
	return nil, errors.New("the members do not agree on one")
}

// Followers returns the members that do not lead, running or not.
func (c *EtcdCluster) Followers() []*Etcd {
	c.tb.Helper()
	return others(c.Nodes, c.Leader())
}
