package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Gap is a time in which somebody waited for a key that nobody could have.
type Gap struct {
	Key string
	Span
}

// Length is how long it was.
func (g Gap) Length() time.Duration { return time.Duration(g.To - g.From) }

// Progress checks [Lively]: the longest time in which a key was free, or held by a
// lock that had ended, and somebody waited for it. It is a violation if it is
// longer than bound. ttl is that of the locks: a lock whose holder is silent may
// stand so long after the last that is known of it.
func (r *Run) Progress(ttl, bound time.Duration) (longest Gap, all []Violation) {
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		for _, span := range idle(holds, int64(ttl)) {
			g := Gap{key, span}
			if g.Length() > longest.Length() {
				longest = g
			}
			if g.Length() > bound {
				all = append(all, Violation{Lively, key, g.From, fmt.Sprintf(
					"nobody has got the key for %v, though somebody waited and nobody held it", g.Length().Round(time.Millisecond))})
			}
		}
	}
	return longest, all
}

// A step changes how many wait for a key, and the weight that is held.
type step struct {
	at      int64
	waiting int
	weight  int64
}

// idle returns when a key had a waiter and no holder, or, with slots, not as
// many as it could have.
func idle(holds []*Hold, ttl int64) (all []Span) {
	var steps []step
	for _, h := range holds {
		steps = append(steps, step{h.Asked, 1, 0})
		if h.Got == Never {
			if end := min(h.Refused, h.Died); end != Never {
				steps = append(steps, step{end, -1, 0})
			}
			continue
		}
		steps = append(steps, step{h.Got, -1, h.Weight})
		if end := h.end(ttl); end != Never {
			steps = append(steps, step{end, 0, -h.Weight})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	var now step
	begin := int64(Never)
	for _, s := range steps {
		idle := s.weight > 0 // a grant ends what was idle, even if it begins another
		now = step{s.at, now.waiting + s.waiting, now.weight + s.weight}
		free := now.waiting > 0 && (now.weight == 0 || holds[0].slot() && now.weight < holds[0].Limit)
		if begin != Never && (!free || idle) {
			all = append(all, Span{begin, s.at})
			begin = Never
		}
		if free && begin == Never {
			begin = s.at
		}
	}
	return all
}

// end is when a lock that was granted stands no longer, for certain.
func (h *Hold) end(ttl int64) int64 {
	if h.Freed != Never && h.Lost == Never && h.Note == "" {
		return h.Freed
	}
	last := max(h.Got, h.Held)
	if h.Until != Never {
		last = max(last, h.Until)
	}
	return last + ttl
}
