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
// lock that had ended, and somebody waited for it. It is a violation if more than
// bound of it is not excused: by a fault, since whoever is silent keeps a key, or
// its place in line, for up to lapse after it, or by a machine so busy that some
// process has not run. ttl is that of the locks.
func (r *Run) Progress(ttl, lapse, bound time.Duration) (longest Gap, all []Violation) {
	excuses := r.excuses(int64(lapse))
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		for _, span := range idle(holds, int64(ttl)) {
			g := Gap{key, span}
			if g.Length() > longest.Length() {
				longest = g
			}
			if rest := time.Duration(unexcused(span, excuses)); rest > bound {
				all = append(all, Violation{Check: Lively, Key: key, At: g.From, Text: fmt.Sprintf(
					"nobody has got the key for %v, for %v of that without a reason, though somebody waited and nobody held it",
					g.Length().Round(time.Millisecond), rest.Round(time.Millisecond))})
			}
		}
	}
	return longest, all
}

// excuses are the times in which a fault, or what it has left, may keep a key
// from those who wait, and those in which some process has not run. They do not
// overlap, and are in order.
func (r *Run) excuses(lapse int64) (all []Span) {
	var spans []Span
	for _, f := range r.Faults {
		span := Span{f.From, Never}
		if f.To < Never-lapse {
			span.To = f.To + lapse
		}
		spans = append(spans, span)
	}
	for _, l := range r.Lives {
		spans = append(spans, l.Stalls...)
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, span := range spans {
		if last := len(all) - 1; last >= 0 && span.From <= all[last].To {
			all[last].To = max(all[last].To, span.To)
		} else {
			all = append(all, span)
		}
	}
	return all
}

// unexcused is how much of a span no excuse covers.
func unexcused(span Span, excuses []Span) (rest int64) {
	rest = span.To - span.From
	for _, e := range excuses {
		if e.Overlaps(span) {
			rest -= min(e.To, span.To) - max(e.From, span.From)
		}
	}
	return rest
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
