package engine

// A queue is the waiters of a turn, in FIFO order.
type queue struct {
	first, last *waiter
}

// A waiter stands in a queue until a call. The call sets closed, hold or claim.
type waiter struct {
	Terms
	Bounds

	ready  chan bool // true: called; false: report a long hold of this engine. A send never blocks.
	called bool
	closed bool   // the engine was closed
	hold   *Hold  // handed over; if nil, the waiter contends
	claim  *lease // of the previous contender, to ask for again

	prev, next *waiter
}

// call ends the wait: with a hold, with a claim to ask for again, or with neither.
func (w *waiter) call(hold *Hold, claim *lease) {
	w.called, w.hold, w.claim = true, hold, claim
	w.ready <- true
}

// warn makes the waiter report a long hold of this engine.
func (w *waiter) warn() {
	if len(w.ready) == 0 { // A place is left for the call.
		w.ready <- false
	}
}

func (q *queue) push(w *waiter) {
	w.prev = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}
