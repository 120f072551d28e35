package drivertest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A history records what the clients of a workload knew of their grants, and when the
// clients freed a key.
type history struct {
	sync.Mutex
	tenures []tenure
	freed   map[string][]time.Time // by key: when a release was answered
	lost    map[string][]time.Time // by id: when its owner was notified of a loss
}

// add records a tenure, known in full once the client has released or vanished.
func (h *history) add(t tenure) {
	h.Lock()
	defer h.Unlock()
	h.tenures = append(h.tenures, t)
}

// grants is the number of tenures so far.
func (h *history) grants() int {
	h.Lock()
	defer h.Unlock()
	return len(h.tenures)
}

// free records that a release was answered now, so that slept knows when waiters could be
// granted. A release by a client that vanishes has no answer, and the TTL ends the claim.
func (h *history) free(key string) {
	h.Lock()
	defer h.Unlock()
	if h.freed == nil {
		h.freed = make(map[string][]time.Time)
	}
	h.freed[key] = append(h.freed[key], now())
}

// hears records the losses of which a client is notified, until stop. Only claims that end with a
// session may be lost in a history: all others stand until their TTL ends.
func (h *history) hears(c *client) (stop func()) {
	notifier, ok := c.store.(driver.Notifier)
	if !ok || c.has(Outlive) {
		return func() {}
	}
	return notifier.Notify(func(_, id string, _ error) {
		h.Lock()
		defer h.Unlock()
		if h.lost == nil {
			h.lost = make(map[string][]time.Time)
		}
		h.lost[id] = append(h.lost[id], now())
	})
}

// known returns a tenure as its client knew it: a claim ends when its owner is notified of a loss.
// The notice may come before the answer that grants the claim.
func (h *history) known(t tenure) tenure {
	for _, at := range h.lost[t.claim.ID] {
		if at.After(t.sent) && at.Before(t.until) {
			t.until = at
		}
	}
	return t
}

// byKey splits the tenures by key, every part in the order in which the grants were
// known.
func (h *history) byKey() map[string][]tenure {
	h.Lock() // A notice may still be under way.
	defer h.Unlock()
	keys := make(map[string][]tenure)
	for _, t := range h.tenures {
		t = h.known(t)
		keys[t.claim.Key] = append(keys[t.claim.Key], t)
	}
	for _, ts := range keys {
		slices.SortFunc(ts, func(a, b tenure) int { return a.from.Compare(b.from) })
	}
	return keys
}

// overlap finds a moment at which the live claims weigh more than the limit of the newest
// live claim. A claim is live while the client relies on the claim: until a margin before
// the end of the TTL. The claim stands in the store for longer, since before the answer and
// until after the request to release, so overlap accuses no sound store.
func overlap(ts []tenure, margin time.Duration) error {
	type edge struct {
		at     time.Time
		begins bool
		tenure tenure
	}
	var edges []edge
	for _, t := range ts {
		if until := t.until.Add(-margin); until.After(t.from) {
			edges = append(edges, edge{t.from, true, t}, edge{until, false, t})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return cmp.Compare(btoi(a.begins), btoi(b.begins)) // ends first
	})
	var live []tenure
	weight := int64(0)
	for _, edge := range edges {
		if !edge.begins {
			weight -= edge.tenure.claim.Weight
			live = slices.DeleteFunc(live, func(t tenure) bool { return t.claim.ID == edge.tenure.claim.ID })
			continue
		}
		weight += edge.tenure.claim.Weight
		live = append(live, edge.tenure)
		if weight > edge.tenure.claim.Limit {
			return fmt.Errorf("claims of weight %d held one key at once:%s", weight, list(live))
		}
	}
	return nil
}

// disorder finds two grants with a token in common, or a grant whose token is not larger
// than the token of a grant known before the request. Readers may share a token. If two
// grants were requested at the same time, nobody can know their order.
func disorder(ts []tenure) error {
	ts = slices.Clone(ts)
	slices.SortFunc(ts, func(a, b tenure) int { return cmp.Compare(a.first, b.first) })
	for i, high := range ts {
		for _, low := range ts[:i] {
			readers := low.claim.Shared() && high.claim.Shared()
			if low.last >= high.first && !readers {
				return fmt.Errorf("two grants have a token in common:%s", list([]tenure{low, high}))
			}
			if high.last > low.first && high.from.Before(low.asked) {
				return fmt.Errorf("a grant was known before another was asked for, and has the larger token:%s", list([]tenure{high, low}))
			}
		}
	}
	return nil
}

// passed finds a claim that was granted before an earlier waiter. The waiter was in the
// queue when the claim first asked. A waiter that did not ask in time may have lost its place.
// If a call about one of the two was late, the finding is in doubt: the later claim may have
// been the first at a node of the store.
func passed(ts []tenure) (late error) {
	for i := range ts {
		for j := range ts {
			a, b := &ts[i], &ts[j]
			if !a.claim.Wait || a.lined.IsZero() || !a.lined.Before(b.born) || !b.passes(a) {
				continue
			}
			seen := fmt.Errorf("the second was granted before the first, which was in the queue since %s:%s", clock(a.lined), list([]tenure{*a, *b}))
			if max(a.slowest, b.slowest) < callLimit {
				return seen
			}
			late = doubt{error: seen, late: true}
		}
	}
	return late
}

// passes reports whether a claim was granted while a waiter was in the queue: the grant was known
// before the last refusal of the waiter, or has a smaller token than the grant of the waiter.
func (t *tenure) passes(waiter *tenure) bool {
	alive := waiter.claim.Alive()
	if waiter.gap >= alive {
		return false
	}
	return t.from.Before(waiter.asked) || t.last < waiter.first && waiter.from.Sub(waiter.asked) < alive
}

// slept finds a waiter without a wake-up: the waiter was granted when asking to keep its
// place, though every release that could let the waiter in was answered before. slept needs
// the exact clock of a bubble.
func (h *history) slept() error {
	for _, t := range h.tenures {
		if !t.found {
			continue
		}
		atOnce := func(freed time.Time) bool { return freed.Equal(t.from) }
		if !slices.ContainsFunc(h.freed[t.claim.Key], atOnce) {
			return fmt.Errorf("%s was not woken: it found itself granted when it asked again at %s", show(t.claim), clock(t.from))
		}
	}
	return nil
}

// list is a line for each tenure, for a report.
func list(ts []tenure) string {
	var out string
	for _, t := range ts {
		out += fmt.Sprintf("\n\t%s asked %s, held %s to %s, tokens %d to %d",
			show(t.claim), clock(t.asked), clock(t.from), clock(t.until), t.first, t.last)
	}
	return out
}

// clock is a moment in a report. The day does not matter.
func clock(t time.Time) string { return t.Format("15:04:05.000000") }

// btoi orders false before true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
