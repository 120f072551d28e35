package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// A Store is what checks have to know of the store.
type Store struct {
	Held  time.Duration // how long a lock stands of whose holder nothing is heard
	Place time.Duration // how long a place in line does, and the lock that comes to it
	Line  bool          // who has asked first is let in first
}

// A Gap is a time in which somebody waited for a key that nobody could have.
type Gap struct {
	Key string
	Span
}

// Length is how long it was.
func (g Gap) Length() time.Duration { return time.Duration(g.To - g.From) }

// Gaps returns all the times in which somebody waited for a key that nobody had. A
// holder that has died had it until then, one that was lost until its deadline.
func (r *Run) Gaps() (all []Gap) {
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		for _, span := range idle(holds, 0) {
			all = append(all, Gap{key, span})
		}
	}
	return all
}

// Progress checks [Lively]: that nobody waits without an excuse for more than bound
// for a key that is free, or held by a lock that has ended and that the store has no
// reason to keep.
//
// A fault of a server excuses all waiters, until lapse after it: some servers begin
// leases and sessions anew when they come back, also those of who has gone long before,
// so that it matters neither when somebody has asked nor who is still there. That of a worker
// excuses its own waiters, and besides only those who wait for a key that it had
// asked for before them: they stand in line behind what it has left. So does, for
// as long as it takes, a machine so busy that processes have not run, and for up to
// standstill a store so busy that nobody has got any key.
func (r *Run) Progress(store Store, bound, standstill time.Duration) (all []Violation) {
	for key, q := range r.queues(store, standstill) {
		for _, span := range idle(q.holds, int64(store.Held)) {
			g := Gap{key, span}
			if g.Length() <= bound {
				continue
			}
			if who, rest := q.stuck(span); rest > bound {
				all = append(all, Violation{Check: Lively, Key: key, At: g.From, Text: fmt.Sprintf(
					"nobody has got the key for %v, though nobody held it and %s waited, for %v of that without a reason",
					g.Length().Round(time.Millisecond), who, rest.Round(time.Millisecond))})
			}
		}
	}
	return all
}

// busy are the times in which a process did not run that nobody had stopped.
func (r *Run) busy() (all []Span) {
	for _, l := range r.Lives {
		for _, s := range l.Stalls {
			if !slices.ContainsFunc(r.Faults, func(f Fault) bool {
				return f.Nemesis == string(plan.Pause) && f.Worker == l.Worker && f.Overlaps(s)
			}) {
				all = append(all, s)
			}
		}
	}
	return all
}

// standstills are the times of more than a second, and no more than most, in which
// nobody has got any lock.
func (r *Run) standstills(most time.Duration) (all []Span) {
	var got []int64
	for _, h := range r.Holds {
		if h.Got != Never {
			got = append(got, h.Got)
		}
	}
	slices.Sort(got)
	for i := 1; i < len(got); i++ {
		if length := time.Duration(got[i] - got[i-1]); length > time.Second && length <= most {
			all = append(all, Span{got[i-1], got[i]})
		}
	}
	return all
}

// harms are the faults. A kill is over when the process has gone, not when the next
// one has come.
func (r *Run) harms() []Fault {
	all := slices.Clone(r.Faults)
	for i, f := range all {
		for _, l := range r.Lives {
			if f.Nemesis == string(plan.Kill) && l.Worker == f.Worker && f.From <= l.Died && l.Died < f.To {
				all[i].To = l.Died
			}
		}
	}
	return all
}

// waits is when somebody waits.
func (h *Hold) waits() Span { return Span{h.Asked, min(h.Got, h.Refused, h.Died)} }

// present is when the store may have a claim in line, or a lock.
func (h *Hold) present() Span {
	if h.Got == Never {
		return Span{h.Asked, min(h.Refused, Never-settling) + settling}
	}
	return Span{h.Asked, h.Freed}
}

// harms reports whether somebody who waits feels a fault itself. Of a kill nobody does
// who is still there.
func (f Fault) harms(who Who) bool {
	return f.Worker < 0 || f.Worker == who.Worker && f.Nemesis != string(plan.Kill)
}

// until is when a fault, or what it has left for lapse, may be felt. A lock that is
// granted while a clock is wrong may stand for as much longer.
func (f Fault) until(lapse time.Duration) Span {
	after := int64(lapse + time.Duration(f.Step).Abs())
	return Span{f.From, min(f.To, Never-after) + after}
}

// A step changes how many wait for a key, and the weight that is held.
type step struct {
	at      int64
	waiting int
	weight  int64
}

// idle returns when a key had a waiter and no holder, or, with slots, not as
// many as it could have.
func idle(holds []*Hold, lapse int64) (all []Span) {
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
		if end := h.end(lapse); end != Never {
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
func (h *Hold) end(lapse int64) int64 {
	if h.Freed != Never && h.Lost == Never && h.Note == "" {
		return h.Freed
	}
	last := max(h.Got, h.Held)
	if h.Until != Never {
		last = max(last, h.Until)
	}
	return min(last, h.Died) + lapse
}
