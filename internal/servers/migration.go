package servers

import (
	"fmt"
	"slices"
	"strconv"
)

// A Migration is the move of a slot between two primaries, step by step.
type Migration struct {
	cluster  *Cluster
	slot     string
	from, to *Redis
}

// BeginMigration announces the move to both primaries. From then on, the old primary still
// serves the keys that it has. Clients that ask for missing keys get an ASK redirection.
func (c *Cluster) BeginMigration(slot int, to *Redis) *Migration {
	c.tb.Helper()
	m := &Migration{cluster: c, slot: strconv.Itoa(slot), from: c.Owner(slot), to: to}
	if m.from == to {
		c.tb.Fatalf("slot %d is at %s already", slot, to.Addr())
	}
	to.Must("CLUSTER", "SETSLOT", m.slot, "IMPORTING", c.ids[m.from])
	m.from.Must("CLUSTER", "SETSLOT", m.slot, "MIGRATING", c.ids[to])
	return m
}

// MoveKeys moves the current keys of the slot.
func (m *Migration) MoveKeys() {
	m.cluster.tb.Helper()
	for {
		reply, _ := m.from.Must("CLUSTER", "GETKEYSINSLOT", m.slot, "100").([]any)
		if len(reply) == 0 {
			return
		}
		limit := strconv.FormatInt((patience / 2).Milliseconds(), 10)
		command := []string{"MIGRATE", loopback, strconv.Itoa(m.to.port), "", "0", limit, "KEYS"}
		for _, key := range reply {
			command = append(command, fmt.Sprint(key))
		}
		m.from.Must(command...)
	}
}

// End gives the slot to the new primary, and returns when all nodes know. Before End, all
// keys must have moved, and all nodes must run.
func (m *Migration) End() {
	c := m.cluster
	c.tb.Helper()
	slot, _ := strconv.Atoi(m.slot)
	// Start with the new owner: the remaining nodes have to believe the new owner.
	for _, r := range slices.Concat([]*Redis{m.to, m.from}, others(others(c.Primaries(), m.to), m.from)) {
		r.Must("CLUSTER", "SETSLOT", m.slot, "NODE", c.ids[m.to])
	}
	if owner := c.Owner(slot); owner != m.to {
		c.tb.Fatalf("slot %s went to %s instead of %s", m.slot, owner.Addr(), m.to.Addr())
	}
}
