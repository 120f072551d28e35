package etcdlock

import (
	"container/heap"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A claim is one that this Store has in etcd, or may have. While the lease on
// which it hangs is kept alive for others, etcd will not end it; so each has a
// time of its own by which its owner has to renew it, or the reaper ends it. The
// fields are guarded by Store.mu.
type claim struct {
	driver.Claim // as last asked for
	name         string
	state        state
	lease        *lease
	since        int64 // microseconds since 1970
	until        time.Time
	at           int // in the schedule

	loose  bool // a request to make it may still be on its way
	astray bool // it may be under another lease of ours
	doomed bool // the reaper is to remove it

	// Of one that is known to be in etcd:
	rev   int64 // in which it was made
	mod   int64 // in which it was last written
	seen  int64 // in which the line was read of which the following tells
	phase int64
	span  int
	asked time.Time // the sending of the last Acquire that was answered
	ahead line      // those before it in line, as far as they have not left
	joins bool      // readers were before it, which may have left since
}

type state int

const (
	asking  state = iota // it may be in etcd
	waiting              // it is, and others are before it
	held                 // it is, and has the key
	ending               // it is over, and may still be in etcd
)

func (c *claim) token() uint64 { return (&place{rev: c.rev, record: record{Phase: c.phase}}).token() }

// granted is the grant of one that holds.
func (c *claim) granted(ttl time.Duration) driver.Grant {
	return driver.Grant{OK: true, Fence: c.token(), Span: c.span, TTL: ttl}
}

func span(c driver.Claim) int {
	if c.Shared() {
		return 1
	}
	return min(max(c.Span, 1), driver.MaxSpan)
}

// record is what a claim says of itself in etcd. A place in line is taken with
// the TTL of the claim, whatever its lease.
func (s *Store) record(c *claim) record {
	return record{
		ID: c.ID, Weight: c.Weight, Limit: c.Limit, TTL: c.TTL, Span: c.span, Phase: c.phase,
		Client: s.id, Since: c.since, Owner: c.Owner, Note: c.Note,
	}
}

// enter puts a claim into the table that is not there, and is to hang on a lease.
// Call it with mu held.
func (s *Store) enter(dc driver.Claim, l *lease) *claim {
	c := &claim{Claim: dc, since: time.Now().UnixMicro(), at: -1}
	s.table[dc.ID] = c
	s.name(c)
	c.hang(l)
	return c
}

// name gives a claim the first name of ours that is free in its folder. etcd
// remembers each name that was ever in a folder until it is compacted, and goes
// through all of them when it reads the folder, so names are used again. Call it
// with mu held.
func (s *Store) name(c *claim) {
	for n := 0; ; n++ {
		name := s.names.folder(c.Key) + s.id + "." + strconv.Itoa(s.epoch) + "." + strconv.Itoa(n)
		if s.named[name] == nil {
			c.name, s.named[name] = name, c
			return
		}
	}
}

// rename gives a claim a name that was never used, because etcd still knows
// another claim of ours by the one that it has: one that was left, or was under a
// lease that was lost to us first.
func (s *Store) rename(c *claim) {
	delete(s.named, c.name)
	s.epoch++
	s.name(c)
}

// hang says on which lease a claim is, nil for none. Call it with Store.mu held.
func (c *claim) hang(l *lease) {
	if c.lease != nil {
		c.lease.claims--
	}
	if c.lease = l; l != nil {
		l.claims++
	}
}

// stand lets a claim stand until then unless it is renewed. Call it with mu held.
func (s *Store) stand(c *claim, until time.Time) {
	c.until = until
	if c.at < 0 {
		heap.Push(&s.schedule, c)
	} else {
		heap.Fix(&s.schedule, c.at)
	}
	if until.Before(s.armed) {
		s.armed = until
		s.kickReaper()
	}
}

// drop forgets a claim. Call it with mu held.
func (s *Store) drop(c *claim) {
	if s.table[c.ID] == c {
		delete(s.table, c.ID)
		delete(s.named, c.name)
	}
	if c.at >= 0 {
		heap.Remove(&s.schedule, c.at)
	}
	c.hang(nil)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// end lets a claim be over. Until it is dropped, its id gets nothing. Call it with
// mu held.
func (s *Store) end(c *claim) {
	if c.state == asking {
		c.loose = true
	}
	c.state = ending
	if c.at >= 0 {
		heap.Remove(&s.schedule, c.at)
	}
}

// condemn lets the reaper remove a claim from etcd. Call it with mu held.
func (s *Store) condemn(c *claim) {
	s.end(c)
	if s.table[c.ID] == c && !c.doomed {
		c.doomed = true
		s.dying = append(s.dying, c)
		s.kickReaper()
	}
}

// A schedule has the claims in the order in which they run out.
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
