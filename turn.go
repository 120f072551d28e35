package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A turn is where the goroutines of this process that want one key take turns. One of them,
// the contender, asks the store and waits there; the others queue behind it. Locker.mu
// guards all fields.
type turn struct {
	key        string
	weight     int64    // of the claims that are held or being requested
	leases     []*lease // held claims
	line       line
	asking     int32      // calls that are asking for a claim
	contending bool       // a contender asks on behalf of the queue
	waiting    bool       // the contender has been refused
	refusal    *HeldError // the contender's refusal
	failure    error      // of the store, when last asked on behalf of the queue

	// strays are losses reported by the store before the grant had arrived.
	strays map[string]error
}

// turn returns the turn of a key.
func (lk *Locker) turn(key string) *turn {
	t := lk.turns[key]
	if t != nil {
		return t
	}
	if n := len(lk.spare); n > 0 {
		t, lk.spare = lk.spare[n-1], lk.spare[:n-1]
	} else {
		t = new(turn)
	}
	t.key = key
	lk.turns[key] = t
	return t
}

// maxSpare bounds the turns that are kept for reuse.
const maxSpare = 64

// tidy removes an unused turn.
func (lk *Locker) tidy(t *turn) {
	if t.asking > 0 || len(t.leases) > 0 || t.line.first != nil {
		return
	}
	delete(lk.turns, t.key)
	if len(lk.spare) < maxSpare {
		*t = turn{leases: t.leases}
		lk.spare = append(lk.spare, t)
	}
}

// fits reports whether the claims of the process leave room for the wanted claim.
func (t *turn) fits(want terms) bool { return t.weight+want.weight <= want.limit }

// shuts reports whether the locks held by the process leave no room for the wanted claim.
func (t *turn) shuts(want terms) bool {
	var held int64
	for _, l := range t.leases {
		held += l.claim().Weight
	}
	return held > want.limit-want.weight
}

// taken reports whether this process holds the whole key, or is about to. Then callers wait
// here; another claim at the store would only wait for our own.
func (t *turn) taken() bool { return t.weight >= driver.MaxWeight }

func (t *turn) begin(want terms) {
	t.asking++
	t.weight += want.weight
}

// end reverts begin. The lease, if the request was granted, brings its own weight.
func (t *turn) end(want terms) {
	t.asking--
	t.weight -= want.weight
	if t.asking == 0 {
		t.strays = nil
	}
}

// retire records that nobody asks on behalf of the queue.
func (t *turn) retire() { t.contending, t.waiting, t.failure = false, false, nil }

func (t *turn) admit(l *lease) {
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

// pump makes the first waiter the contender if there is no contender. A writer behind
// readers of the process contends too, because readers of other processes must not pass
// the writer.
func (lk *Locker) pump(t *turn) {
	if w := t.line.first; w != nil && !t.contending && !t.taken() {
		t.line.remove(w)
		t.contending = true
		t.begin(w.terms)
		w.call(nil, nil)
		return
	}
	lk.tidy(t)
}

// heldHere explains a refusal that needed no store.
func (lk *Locker) heldHere(t *turn) *HeldError {
	if len(t.leases) == 0 && t.waiting {
		return t.refusal
	}
	e := &HeldError{Owner: lk.opts.Owner}
	if len(t.leases) > 0 {
		l := t.leases[0]
		now := lk.now()
		e.here, e.Note, e.Since = true, l.claim().Note, time.Now().Add(l.began()-now)
		if d, ok := l.remaining(now); ok {
			e.Retry = max(d, 0)
		}
	}
	return e
}
