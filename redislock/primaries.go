package redislock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/canary"
)

// A survey asks the nodes of a Cluster for the primaries. A silent node is missed only if
// another node names the silent node as a primary: a replica that is down keeps no client
// from the primary.
type survey struct {
	nodes  map[string]rueidis.Client // by address
	open   map[string]bool           // nodes that have not answered
	named  map[string]bool           // primaries, as the answers say
	failed map[string]error
	conns  []Conn
}

// Primaries implements Conn.
func (c *rueidisConn) Primaries(ctx context.Context) ([]Conn, error) {
	if !c.Cluster() {
		return []Conn{c}, nil
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return nil, err
	}
	s := survey{nodes: nodes, open: make(map[string]bool), named: make(map[string]bool), failed: make(map[string]error)}
	return s.run(ctx)
}

// nodes returns the nodes that the client knows. After a refused connection, rueidis (1.0.79) may
// refresh its nodes before any connection is open. Such a refresh finds no node and no error. A
// command with a slot makes rueidis refresh again. The command itself may go to a silent node.
func (c *rueidisConn) nodes(ctx context.Context) (map[string]rueidis.Client, error) {
	if nodes := c.client.Nodes(); len(nodes) > 0 {
		return nodes, nil
	}
	command := c.client.B().ClusterSlots().Build().SetSlot("holdfast")
	half, cancel := canary.Limit(ctx, refresh)
	defer cancel()
	_, err := within(half, func() (Reply, error) {
		r := reply(c.client.Do(half, command))
		return r, r.Err
	}, nil)
	nodes := c.client.Nodes()
	if len(nodes) == 0 && err != nil && !errors.Is(err, rueidis.ErrNoSlot) {
		return nil, fmt.Errorf("no node of the Cluster is known: %w", err)
	}
	return nodes, nil
}

func (s *survey) run(ctx context.Context) ([]Conn, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan func(), len(s.nodes))
	for addr, node := range s.nodes {
		s.open[addr] = true
		go func() {
			named, err := namedBy(asking, addr, node)
			answers <- func() { s.note(addr, named, err) }
		}()
	}
	for s.waits() {
		select {
		case note := <-answers:
			note()
		case <-ctx.Done():
			for addr := range s.open {
				s.failed[addr] = ctx.Err()
			}
			return s.conns, s.missed()
		}
	}
	return s.conns, s.missed()
}

// waits reports whether a node that may be a primary has not answered.
func (s *survey) waits() bool {
	if len(s.named) == 0 {
		return len(s.open) > 0
	}
	for addr := range s.named {
		if s.open[addr] {
			return true
		}
	}
	return false
}

// note enters the answer of a node. Only the node's own answer makes the node a primary.
func (s *survey) note(addr string, named []string, err error) {
	delete(s.open, addr)
	if err != nil {
		s.failed[addr] = err
		return
	}
	for _, primary := range named {
		s.named[primary] = true
	}
	if slices.Contains(named, addr) {
		s.conns = append(s.conns, &rueidisConn{client: s.nodes[addr]})
	}
}

// missed is the error of the primaries that have not answered, and of the primaries that the
// client does not know. The client may have a different name for a primary, or may have left
// out a failed primary. Without an answer, missed is the error of every node.
func (s *survey) missed() error {
	var errs []error
	for _, addr := range slices.Sorted(maps.Keys(s.failed)) {
		if s.named[addr] || len(s.named) == 0 {
			errs = append(errs, fmt.Errorf("%s: %w", addr, s.failed[addr]))
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(s.named)) {
		if _, known := s.nodes[addr]; !known {
			errs = append(errs, fmt.Errorf("%s: the client does not know this primary", addr))
		}
	}
	if errs == nil && len(s.conns) == 0 {
		return errors.New("no node of the Cluster is a primary with slots")
	}
	return errors.Join(errs...)
}

// namedBy returns the primaries that a node names in CLUSTER SLOTS: lists of a first slot,
// a last slot, the primary and its replicas.
func namedBy(ctx context.Context, addr string, node rueidis.Client) (primaries []string, err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	r := reply(node.Do(ctx, node.B().ClusterSlots().Build()))
	if r.Err != nil {
		return nil, r.Err
	}
	ranges, _ := r.Value.([]any)
	for _, of := range ranges {
		list, _ := of.([]any)
		if len(list) < 3 {
			return nil, errReply
		}
		primary, _ := list[2].([]any)
		if len(primary) < 2 {
			return nil, errReply
		}
		name, _ := primary[0].(string) // empty if the node does not know the own address
		port, _ := primary[1].(int64)
		if name == "" {
			name = host
		}
		primaries = append(primaries, net.JoinHostPort(name, strconv.FormatInt(port, 10)))
	}
	return primaries, nil
}
