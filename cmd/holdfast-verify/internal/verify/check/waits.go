package check

import (
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// Waits is the total time of waiting for locks. Judged is the part without an excuse, in
// which [Run.Progress] would have found a wait wrong.
type Waits struct{ All, Judged time.Duration }

// Waits adds up the waits that [Run.Progress] can judge. A try does not wait.
func (r *Run) Waits(store Store, standstill time.Duration) (w Waits) {
	for _, q := range r.queues(store, standstill) {
		for _, h := range q.holds {
			waited := h.waits()
			if h.Mode == string(plan.Try) || waited.To == Never {
				continue
			}
			w.All += time.Duration(waited.To - waited.From)
			w.Judged += q.unexcused(h, waited)
		}
	}
	return w
}

// enough reports whether Progress would have found a key that nobody could acquire for so
// long. It assumes that the key has waiters as often as the rest of the keys.
func (w Waits) enough(length, bound time.Duration) bool {
	return w.Judged.Seconds()*length.Seconds() > bound.Seconds()*w.All.Seconds()
}

// length returns how long clients requested or held locks.
func (r *Run) length() time.Duration {
	first, last := int64(Never), int64(0)
	for _, h := range r.Holds {
		first = min(first, h.Asked)
		for _, at := range []int64{h.Asked, h.Got, h.Refused, h.Freed} {
			if at != Never {
				last = max(last, at)
			}
		}
	}
	return time.Duration(max(0, last-first))
}
