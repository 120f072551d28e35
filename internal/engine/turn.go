package engine

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A turn is where the goroutines of this process that want a key take turns. The contender asks
// the store and waits there. The remaining goroutines queue behind the contender. More calls may
// ask the store once, beside the contender.
type turn struct {
	key        string
	weight     int64    // of the claims that are held or being requested
	leases     []*lease // held claims, and the parked claim
	queue      queue
	requests   int32    // calls that are asking for a claim
	contending bool     // a call is the contender
	refusal    *Refusal // of the contender; nil until refused
	failure    error    // of the store, when last asked on behalf of the queue

	// early are losses that the store reported before the grant had arrived, by claim id.
	early map[string]error
}

// A place is the first step of a new call.
type place uint8

const (
	refuse  place = iota // refused without the store
	contend              // asks the store on behalf of the queue
	beside               // asks the store once
	stand                // stands in the queue
)

// enter decides about a new call. A call that tries does not wait.
func (t *turn) enter(want Terms, try bool) place {
	alone := t.queue.first == nil
	blocked := !alone || t.refused() || t.weight+want.Weight > want.Limit
	switch {
	case try && blocked:
		return refuse
	case !try && alone && !t.contending && !t.taken():
		t.contending = true
		t.begin(want)
		return contend
	case blocked:
		return stand
	}
	t.begin(want)
	return beside
}

// refused reports whether the contender has been refused.
func (t *turn) refused() bool { return t.refusal != nil }

// full reports whether the held claims of the process leave no room for the wanted claim.
func (t *turn) full(want Terms) bool {
	var held int64
	for _, l := range t.leases {
		held += l.claim().Weight
	}
	return held > want.Limit-want.Weight
}

// taken reports whether this process holds the whole key, or is about to. Then callers wait
// here; a second claim at the store would only wait for the first.
func (t *turn) taken() bool { return t.weight >= driver.MaxWeight }

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
func (t *turn) refuses(r *Refusal) { t.refusal, t.failure = r, nil }

// retire records that nobody asks on behalf of the queue.
func (t *turn) retire() { t.contending, t.refusal, t.failure = false, nil, nil }

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
	i := slices.Index(t.leases, l)
	if i < 0 {
		return false
	}
	t.leases = slices.Delete(t.leases, i, i+1)
	t.weight -= l.claim().Weight
	l.move(over)
	return true
}

// noteLoss records a loss that the store has reported, and returns the hold to notify, nil
// if there is none. A loss may be reported before the grant has arrived.
func (t *turn) noteLoss(id string, why error) *Hold {
	for _, l := range t.leases {
		if l.claim().ID == id {
			l.move(reported) // An Unlock that has begun must not hand the claim over.
			return l.holder()
		}
	}
	if t.requests > 0 {
		if t.early == nil {
			t.early = make(map[string]error)
		}
		t.early[id] = why
	}
	return nil
}

// nextContender takes the waiter that becomes the contender out of the queue; nil if nobody does.
// A writer behind readers of the process contends too, because readers of other processes
// must not pass the writer.
func (t *turn) nextContender() *waiter {
	w := t.queue.first
	if w == nil || t.contending || t.taken() {
		return nil
	}
	t.queue.remove(w)
	t.contending = true
	t.begin(w.Terms)
	return w
}

// replacement takes the waiter that goes on with the claim of a contender with these terms out of
// the queue; nil if nobody does.
func (t *turn) replacement(terms Terms) *waiter {
	w := t.queue.first
	if w == nil || w.Terms != terms {
		return nil
	}
	t.queue.remove(w)
	return w
}

// nextHolder takes the waiter to whom a held claim is handed over out of the queue; nil if
// the claim goes back to the store.
func (t *turn) nextHolder(l *lease, now time.Duration) *waiter {
	if !l.passable(now) {
		return nil
	}
	return t.replacement(l.terms())
}

// parked returns the claim that is parked, or being released after that; nil if there is none.
func (t *turn) parked() *lease {
	for _, l := range t.leases {
		if l.parkedAt > 0 || l.released != nil {
			return l
		}
	}
	return nil
}
