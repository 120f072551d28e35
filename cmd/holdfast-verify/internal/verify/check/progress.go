package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// A Store describes the store to the checks.
type Store struct {
	Held  time.Duration // how long a lock stands while its holder is silent
	Place time.Duration // how long a place in the queue stands, and a lock granted to the place
	Line  bool          // the first to ask is the first to acquire
	Seen  bool          // Place begins when the process of a waiter first sees the claim
}

// A Gap is a time in which a key had waiters, and nobody could acquire the key.
type Gap struct {
	Key string
	Span
}

// Length returns the length of the gap.
func (g Gap) Length() time.Duration { return time.Duration(g.To - g.From) }

// Gaps returns every time in which a key had waiters and no holder. A dead holder counts
// until its death, a lost lock until its deadline.
func (r *Run) Gaps() (all []Gap) {
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		for _, span := range idle(holds, 0) {
			all = append(all, Gap{key, span})
		}
	}
	return all
}

// Progress checks [Lively]: nobody waits without an excuse for more than bound for a free
// key. A key counts as free, too, if its lock has ended and the store has no reason to
// keep the lock.
//
// A fault of a server excuses every waiter, until store.Place after the fault. Some servers
// start leases and sessions anew after a restart, even for clients that had gone long
// before. So neither the time of the request matters, nor which clients are still there.
//
// A fault of a worker excuses the waiters of the worker. The fault also excuses a waiter
// for a key that the worker had requested earlier, because the waiter queues behind the
// worker's remains. With store.Seen, the remains stand for store.Place after the request of
// the waiter, unless its process has looked at the remains before.
//
// If the machine is so busy that processes have not run, waiters are excused for as long as
// that lasts. If the store is so busy that nobody has acquired a key, waiters are excused
// for up to standstill.
func (r *Run) Progress(store Store, bound, standstill time.Duration) (all []Violation) {
	for key, q := range r.queues(store, standstill) {
		for _, span := range idle(q.holds, int64(store.Held)) {
			g := Gap{key, span}
			if g.Length() <= bound {
				continue
			}
			if who, rest := q.stuck(span); rest > bound {
				all = append(all, Violation{Check: Lively, Key: key, At: g.From, Text: fmt.Sprintf(
					"the key was free for %v, although %s waited, for %v of that time without a reason",
					g.Length().Round(time.Millisecond), who, rest.Round(time.Millisecond))})
			}
		}
	}
	return all
}

// busy returns the times in which a process did not run, although no fault had stopped the
// process.
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

// standstills returns the times of more than a second, and no more than most, in which
// nobody acquired a lock.
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

// harms returns the faults. A kill is over when the process has gone, not when the next
// process has come.
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

// waits returns the time of waiting.
func (h *Hold) waits() Span { return Span{h.Asked, min(h.Got, h.Refused, h.Died)} }

// present returns when the store may have a claim in the queue, or a lock.
func (h *Hold) present() Span {
	if h.Got == Never {
		return Span{h.Asked, min(h.Refused, Never-settling) + settling}
	}
	return Span{h.Asked, h.Freed}
}

// harms reports whether a waiter feels a fault itself. No surviving waiter feels a kill.
func (f Fault) harms(who Who) bool {
	return f.Worker < 0 || f.Worker == who.Worker && f.Nemesis != string(plan.Kill)
}

// harmed reports whether a fault has harmed the process of a claim, after the request.
func (f Fault) harmed(h *Hold) bool {
	return h.Who.Worker == f.Worker && h.Asked < f.To && h.Died >= f.From
}

// leaves reports whether a fault may have left a claim in the store.
func (f Fault) leaves(h *Hold) bool { return f.harmed(h) && h.present().Overlaps(f.Span) }

// until returns when a fault, or its after-effects for lapse, may be felt. A lock granted
// while a clock is wrong may stand longer by the step of the clock.
func (f Fault) until(lapse time.Duration) Span {
	after := int64(lapse + time.Duration(f.Step).Abs())
	return Span{f.From, min(f.To, Never-after) + after}
}

// A step changes the number of waiters for a key, and the weight that is held.
type step struct {
	at      int64
	waiting int
	weight  int64
}

// idle returns when a key had a waiter and no holder, or, with slots, fewer holders than
// slots.
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
		idle := s.weight > 0 // a grant ends an idle time, even if a second idle time begins
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

// end returns when a granted lock has ended for certain.
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
