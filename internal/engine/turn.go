package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A contender asks the store on behalf of a queue.
type contender uint8

const (
	none    contender = iota // nobody asks
	asking                   // a call asks
	waiting                  // the call has been refused, and waits at the store
)

// A turn is where the goroutines of this process that want one key take turns. One of them,
// the contender, asks the store and waits there; the others queue behind it. Other calls
// may ask the store once, beside the contender.
type turn struct {
	key       string
	weight    int64    // of the claims that are held or being requested
	leases    []*lease // held claims, and the parked claim
	queue     queue
	requests  int32 // calls that are asking for a claim
	contender contender
	refusal   *Refusal // the contender's refusal
	failure   error    // of the store, when last asked on behalf of the queue

	// early are losses that the store reported before the grant had arrived, by claim id.
	early map[string]error
}

// A place is what a new call does.
type place uint8

const (
	refuse  place = iota // it is refused without the store
	contend              // it asks the store on behalf of the queue
	beside               // it asks the store once
	stand                // it stands in the queue
)

// enter decides about a new call. A call that tries does not wait.
func (t *turn) enter(want Terms, try bool) place {
	alone := t.queue.first == nil
	blocked := !alone || t.refused() || !t.fits(want)
	switch {
	case try && blocked:
		return refuse
	case !try && alone && t.contender == none && !t.taken():
		t.contender = asking
		t.begin(want)
		return contend
	case blocked:
		return stand
	}
	t.begin(want)
	return beside
}

// refused reports whether the contender has been refused.
func (t *turn) refused() bool { return t.contender == waiting }

// fits reports whether the claims of the process leave room for the wanted claim.
func (t *turn) fits(want Terms) bool { return t.weight+want.Weight <= want.Limit }

// shuts reports whether the keys held by the process leave no room for the wanted claim.
func (t *turn) shuts(want Terms) bool {
	var held int64
	for _, l := range t.leases {
		held += l.claim().Weight
	}
	return held > want.Limit-want.Weight
}

// taken reports whether this process holds the whole key, or is about to. Then callers wait
// here; another claim at the store would only wait for our own.
func (t *turn) taken() bool { return t.weight >= driver.MaxWeight }

// unused reports whether nothing needs the turn.
func (t *turn) unused() bool {
	return t.requests == 0 && len(t.leases) == 0 && t.queue.first == nil
}

func (t *turn) begin(want Terms) {
	t.requests++
	t.weight += want.Weight
}

// end reverts begin. The lease, if the request was granted, brings its own weight.
func (t *turn) end(want Terms) {
	t.requests--
	t.weight -= want.Weight
	if t.requests == 0 {
		t.early = nil
	}
}

// refuses records the refusal of the contender.
func (t *turn) refuses(r *Refusal) { t.contender, t.refusal, t.failure = waiting, r, nil }

// retire records that nobody asks on behalf of the queue.
func (t *turn) retire() { t.contender, t.failure = none, nil }

// admit adds a granted lease to those that hold.
func (t *turn) admit(l *lease) {
	switch l.life {
	case granted:
		l.move(held)
	case pushed:
		l.move(brief)
	}
	t.leases = append(t.leases, l)
	t.weight += l.claim().Weight
}

// dismiss removes a lease and reports whether the lease was there.
func (t *turn) dismiss(l *lease) bool {
	for i, other := range t.leases {
		if other == l {
			last := len(t.leases) - 1
			t.leases[i], t.leases[last] = t.leases[last], nil
			t.leases = t.leases[:last]
			t.weight -= l.claim().Weight
			l.move(over)
			return true
		}
	}
	return false
}

// lease returns the lease whose claim has the id, nil if there is no such lease.
func (t *turn) lease(id string) *lease {
	for _, l := range t.leases {
		if l.claim().ID == id {
			return l
		}
	}
	return nil
}

// noteLoss records a loss that the store has reported, and returns the hold to notify, nil
// if there is none. A loss may be reported before the grant has arrived.
func (t *turn) noteLoss(id string, why error) *Hold {
	if l := t.lease(id); l != nil {
		l.move(reported) // An Unlock that has begun must not hand the claim over.
		return l.holder()
	}
	if t.requests > 0 {
		if t.early == nil {
			t.early = make(map[string]error)
		}
		t.early[id] = why
	}
	return nil
}

// next takes the waiter that becomes the contender out of the queue; nil if nobody does. A
// writer behind readers of the process contends too, because readers of other processes
// must not pass the writer.
func (t *turn) next() *waiter {
	w := t.queue.first
	if w == nil || t.contender != none || t.taken() {
		return nil
	}
	t.queue.remove(w)
	t.contender = asking
	t.begin(w.Terms)
	return w
}

// heir takes the waiter that inherits the claim of a contender with these terms out of the
// queue; nil if nobody does.
func (t *turn) heir(terms Terms) *waiter {
	w := t.queue.first
	if w == nil || w.Terms != terms {
		return nil
	}
	t.queue.remove(w)
	return w
}

// successor takes the waiter to whom a held claim is handed over out of the queue; nil if
// the claim goes back to the store.
func (t *turn) successor(l *lease, now time.Duration) *waiter {
	w := t.queue.first
	if w == nil || !l.passable(now, w.Terms) {
		return nil
	}
	t.queue.remove(w)
	return w
}

// parked returns the parked claim, nil if there is none.
func (t *turn) parked() *lease {
	for _, l := range t.leases {
		if l.parkedAt > 0 {
			return l
		}
	}
	return nil
}

// released returns what is closed when a claim that was parked has been released, nil if no
// such claim is in the way.
func (t *turn) released() <-chan struct{} {
	for _, l := range t.leases {
		if l.released != nil {
			return l.released
		}
	}
	return nil
}

// blocked explains a refusal that needed no store, now by the engine's clock and by the
// wall clock. The owner is that of the engine.
func (t *turn) blocked(owner string, now time.Duration, wall time.Time) *Refusal {
	if len(t.leases) == 0 && t.refused() {
		return t.refusal
	}
	r := &Refusal{Owner: owner}
	if len(t.leases) > 0 {
		l := t.leases[0]
		r.Here, r.Note, r.Since = true, l.claim().Note, wall.Add(l.began()-now)
		if d, ok := l.remaining(now); ok {
			r.Left = max(d, 0)
		}
	}
	return r
}
