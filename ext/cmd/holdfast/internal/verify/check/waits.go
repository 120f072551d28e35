package check

import (
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// Waits are how long somebody has waited for locks, all together, and for how much of
// that [Run.Progress] would have found it wrong to wait: no excuse covers it.
type Waits struct{ All, Judged time.Duration }

// Waits adds up what [Run.Progress] can judge. Who only tries does not wait.
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

// enough reports whether a key that nobody could have for this long would have been
// found, if it had been waited for as the others were.
func (w Waits) enough(length, bound time.Duration) bool {
	return w.Judged.Seconds()*length.Seconds() > bound.Seconds()*w.All.Seconds()
}

// length is how long there was somebody who asked for locks, or had one.
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
