package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// A history is what the goroutines of a world did with one lock, and with the register that
// it guards.
type history struct {
	w        *sim.World
	register register
	tries    bool // nobody waits for the lock

	mu      sync.Mutex
	n       int64
	ops     []op
	excuses []excuse
}

// An excuse is a time in which a lock may be refused though nobody holds it.
//   - A call waits in the queue of the store, or the store granted a lock to a call that did
//     not hear of that, or heard too late.
//   - Another goroutine of the process asks, holds or unlocks. A process refuses its own
//     goroutines without the store, until a lock is released, or known to be lost.
type excuse struct {
	process  string // whose calls may be refused, "" for all
	routine  string // the other goroutine
	from, to int64
}

// settle is how long the store may keep what a call has left: its place in the queue or its
// claim, which may have been late to arrive.
const settle = 4 * ttl

// now returns a moment. Moments are in the order of the calls, also within an instant of
// virtual time.
func (h *history) now() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	return int64(h.w.Now())<<20 + h.n
}

// settled is the moment at which the store has forgotten what was left now, at the latest.
func (h *history) settled() int64 { return int64(h.w.Now()+settle) << 20 }

// turn wants the lock and holds it for d.
func (h *history) turn(ctx context.Context, r *sim.Routine, try bool, d time.Duration) {
	from := h.now()
	defer func() { h.excuse(excuse{r.P.Name, r.Name, from, h.now()}) }() // also if the process is killed
	if held := h.lock(ctx, r, try); held != nil {
		h.hold(r, held, d)
	}
}

// lock wants the lock. It returns nil if the lock is not granted.
func (h *history) lock(ctx context.Context, r *sim.Routine, try bool) *sim.Held {
	from, began := h.now(), h.w.Now()
	answered := false
	defer func() {
		switch {
		case !answered:
			h.excuse(excuse{from: from, to: h.settled()})
		case !try:
			h.excuse(excuse{from: from, to: h.now()})
		}
	}()
	held, err := r.Lock(ctx, sim.Want{Key: "k", Try: try})
	switch {
	case err == nil && held.Token > 0:
		answered = true
		h.add(r, op{step: locks, token: held.Token, from: from, to: h.now()})
		return held
	case err == nil: // It was lost before it was here.
		_ = held.Unlock()
	case try && errors.Is(err, holdfast.ErrHeld):
		answered = h.w.Now()-began < ttl/2 // An older grant would have been dropped.
		h.add(r, op{step: refused, from: from, to: h.now()})
	}
	return nil
}

// hold keeps the lock for d, writes to the register, and unlocks.
func (h *history) hold(r *sim.Routine, held *sim.Held, d time.Duration) {
	o := op{step: loses, token: held.Token, from: h.now()}
	defer func() {
		if o.step == loses {
			o.to = h.settled()
		}
		h.add(r, o)
	}()
	for end := h.w.Now() + d; h.w.Now() < end; r.Sleep(1 + r.Upto(d/2)) {
		from := h.now()
		if !held.Look() {
			break
		}
		h.add(r, op{step: holds, token: held.Token, from: from, to: h.now()})
		if r.Rand.IntN(2) == 0 {
			h.write(r, held.Token)
		}
	}
	from := h.now()
	if err := held.Unlock(); err == nil {
		o.step, o.from, o.to = unlocks, from, h.now()
	}
}

// write writes to the register by a request that may be slow or lost.
func (h *history) write(r *sim.Routine, token uint64) {
	ctx, cancel := r.Context(ttl)
	defer cancel()
	o := op{step: unheard, token: token, value: r.Rand.Int(), from: h.now(), to: math.MaxInt64}
	defer func() { h.add(r, o) }()
	w, err := sim.Send(ctx, r.P.Link("register"), "write", "k", "", func() written { return h.register.write(token, o.value) })
	if err != nil {
		return
	}
	o.to, o.seen, o.step = h.now(), w.seen, stale
	if w.done {
		o.step = writes
	}
}

func (h *history) add(r *sim.Routine, o op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.process, o.routine = r.P.Name, r.Name
	h.ops = append(h.ops, o)
}

func (h *history) excuse(e excuse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.excuses = append(h.excuses, e)
}

// excused reports whether an operation is a refusal that has an excuse.
func (h *history) excused(o op) bool {
	return o.step == refused && slices.ContainsFunc(h.excuses, func(e excuse) bool {
		excuses := e.process == "" || e.process == o.process && e.routine != o.routine
		return excuses && e.from < o.to && o.from < e.to
	})
}

// undecided is what check returns of a history that took too long to check.
const undecided = "Porcupine is not done after a minute"

// check returns why the history is not linearizable, "" if it is. proved is the number of
// refusals without an excuse.
func (h *history) check() (wrong string, proved int) {
	ops := slices.DeleteFunc(slices.Clone(h.ops), h.excused)
	slices.SortFunc(ops, func(a, b op) int { return cmp.Compare(a.from, b.from) })
	var all []porcupine.Operation
	for _, o := range ops {
		all = append(all, porcupine.Operation{Input: o, Call: o.from, Return: o.to})
		if o.step == refused {
			proved++
		}
	}
	switch porcupine.CheckOperationsTimeout(model, all, time.Minute) {
	case porcupine.Ok:
		return "", proved
	case porcupine.Unknown:
		return undecided, 0
	}
	var b strings.Builder
	b.WriteString("the history is not linearizable")
	for _, o := range ops {
		fmt.Fprintf(&b, "\n%12v to %12v  %v", time.Duration(o.from>>20), time.Duration(o.to>>20), o)
	}
	return b.String(), proved
}

// A register refuses tokens below the largest that it has seen.
type register struct {
	careless bool // a mistake: it refuses none

	mu    sync.Mutex
	fence uint64
	value int
}

// written is what a write has come to.
type written struct {
	done bool
	seen int // that was overwritten
}

func (g *register) write(token uint64, value int) written {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.fence && !g.careless {
		return written{}
	}
	w := written{true, g.value}
	g.fence, g.value = max(g.fence, token), value
	return w
}
