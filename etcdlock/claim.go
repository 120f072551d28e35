package etcdlock

import (
	"container/heap"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A claim is a claim this Store has in etcd, or may have. While other claims keep the
// shared lease alive, etcd does not end the claim. So every claim has a time, until, by
// which its owner must renew, or the cleaner ends the claim. The fields are guarded by
// Store.mu.
type claim struct {
	entry        // as last known in etcd, but with the Span that was granted or last requested
	key   string // never changes
	state state
	lease *lease
	until time.Time
	at    int // in the schedule

	late      bool // a request to create the claim may still be on its way
	elsewhere bool // etcd may have the claim under another name
	moving    bool // the claim may be under a different lease of this Store

	// The following fields are for a claim known to be in etcd:
	seen      int64         // revision at which the queue was read, for the fields below
	asked     time.Time     // when the last answered Acquire was sent
	kept      time.Duration // how long the place in the queue lasts after a request
	ahead     queue         // claims ahead in the queue, unless known to have left
	more      int           // claims on the key that were not read, which may be ahead
	checkFrom time.Time     // before that, requests for a claim in a vast queue are answered from memory
	joins     bool          // readers were ahead, and may have left since
}

type state int

const (
	asking   state = iota // may be in etcd
	waiting               // is in etcd, behind other claims
	held                  // is in etcd, and holds the key
	ending                // is over, and being removed from etcd
	leftover              // is over, and in Store.leftovers
)

func (c *claim) over() bool { return c.state >= ending }

// granted returns the grant of a holding claim.
func (c *claim) granted(ttl time.Duration) driver.Grant {
	return driver.Grant{OK: true, Fence: c.token(), Span: c.Span, TTL: ttl}
}

// refusal returns the answer to a waiting claim.
func (c *claim) refusal() driver.Grant {
	g := c.ahead.refusal()
	g.Floor = c.token() - 1
	if c.kept > c.alive() {
		g.Kept = c.kept
	}
	return g
}

// span returns how many tokens a request may be granted.
func span(a driver.Ask) int {
	if a.Shared() {
		return 1
	}
	return min(max(a.Span, 1), driver.MaxSpan)
}

// know records what etcd has of a claim. The Span stays as granted or last requested.
func (c *claim) know(e entry) {
	e.Span = c.Span
	c.entry = e
}

// enterLocked puts a new claim into the table, under a lease. A waiting claim is recorded
// with its own TTL, whatever its lease.
func (s *Store) enterLocked(dc driver.Claim, l *lease) *claim {
	c := &claim{key: dc.Key, at: -1, kept: dc.Alive()}
	c.record = record{
		Format: format, ID: dc.ID, Weight: dc.Weight, Limit: dc.Limit, TTL: dc.TTL,
		Client: s.id, Since: time.Now().UnixMicro(), Owner: dc.Owner, Note: dc.Note,
	}
	s.table[dc.ID] = c
	s.nameLocked(c)
	c.setLeaseLocked(l)
	return c
}

// holdingLocked returns the holding claim with an id, nil if there is none.
func (s *Store) holdingLocked(id string) *claim {
	if c := s.table[id]; c != nil && c.state == held {
		return c
	}
	return nil
}

// nameLocked gives a claim the first free name of this Store in its folder. Names are
// reused: etcd remembers every name ever used in a folder until compaction, and scans all
// of them on every read.
func (s *Store) nameLocked(c *claim) {
	for n := 0; ; n++ {
		name := s.names.folder(c.key) + s.id + "." + strconv.Itoa(s.epoch) + "." + strconv.Itoa(n)
		if s.named[name] == nil {
			c.name, s.named[name] = name, c
			return
		}
	}
}

// rename gives a claim a name that was never used. The old name belongs to an earlier
// claim of this Store that etcd still knows. The earlier claim was left, or its lease
// was lost to this Store first.
func (s *Store) rename(c *claim) {
	delete(s.named, c.name)
	s.epoch++
	s.nameLocked(c)
	c.elsewhere = true
}

// onlyName returns the only name that the claim of this Store can have in etcd, "" if there
// may be several.
func (c *claim) onlyName() string {
	if c.elsewhere {
		return ""
	}
	return c.name
}

// setLeaseLocked sets the lease of a claim, nil for none.
func (c *claim) setLeaseLocked(l *lease) {
	if c.lease != nil {
		c.lease.claims--
	}
	if c.lease = l; l != nil {
		l.claims++
	}
}

// standLocked lets a claim stand until a time unless it is renewed.
func (s *Store) standLocked(c *claim, until time.Time) {
	c.until = until
	if c.at < 0 {
		heap.Push(&s.schedule, c)
	} else {
		heap.Fix(&s.schedule, c.at)
	}
	if until.Before(s.armed) {
		s.armed = until
		wake(s.kick)
	}
}

// dropLocked removes a claim from the table.
func (s *Store) dropLocked(c *claim) {
	if s.table[c.ID] == c {
		delete(s.table, c.ID)
		delete(s.named, c.name)
	}
	if c.at >= 0 {
		heap.Remove(&s.schedule, c.at)
	}
	c.setLeaseLocked(nil)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// endLocked marks a claim as over. Until the claim is dropped, its id is granted nothing.
func (s *Store) endLocked(c *claim) {
	if c.state == asking {
		c.late = true
	}
	c.state = max(c.state, ending)
	if c.at >= 0 {
		heap.Remove(&s.schedule, c.at)
	}
}

// addLeftoverLocked ends a claim and leaves its removal from etcd to the cleaner.
func (s *Store) addLeftoverLocked(c *claim) {
	s.endLocked(c)
	if s.table[c.ID] == c && c.state != leftover {
		c.state = leftover
		s.leftovers = append(s.leftovers, c)
		wake(s.kick)
	}
}

// A schedule contains the claims in the order of expiry.
type schedule []*claim

func (h schedule) Len() int           { return len(h) }
func (h schedule) Less(i, j int) bool { return h[i].until.Before(h[j].until) }

func (h schedule) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *schedule) Push(x any) {
	c := x.(*claim)
	c.at = len(*h)
	*h = append(*h, c)
}

func (h *schedule) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	c.at = -1
	return c
}
