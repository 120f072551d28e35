package locktest

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// A Process is a process of a [World]. A process has Lockers and a network to the store. The
// network can be cut, and the process can be paused. Goroutines belong to no process, so
// code under test calls [Process.Step] where a pause matters, mostly by a register or fake.
type Process struct {
	w    *World
	name string
	calm bool // no faults of the seed

	mu      sync.Mutex
	locker  *holdfast.Locker // of Locker
	parts   []*sim.Process
	ttl     time.Duration // the longest
	cut     cause
	paused  cause
	resumed chan struct{} // closed when no cause of a pause is left
	steps   int
	trouble int // steps at which there was some
}

// A cause says whose fault a fault is, so that the seed does not end what the test has begun.
type cause uint8

const (
	byTest cause = 1 << iota
	bySeed
)

// Name returns the name, which is also the owner that other processes see.
func (p *Process) Name() string { return p.name }

// Locker returns the Locker of the process, with default options. The world closes it.
func (p *Process) Locker() *holdfast.Locker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locker == nil {
		p.locker = p.open(nil)
	}
	return p.locker
}

// Open returns another Locker of the process, with these options. The world closes it.
func (p *Process) Open(opts *holdfast.Options) *holdfast.Locker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open(opts)
}

func (p *Process) open(opts *holdfast.Options) *holdfast.Locker {
	var o holdfast.Options
	if opts != nil {
		o = *opts
	}
	if o.Owner == "" {
		o.Owner = p.name
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Trace = holdfast.JoinTraces(o.Trace, p.trace(o.Prefix))
	ttl := cmp.Or(o.TTL, 15*time.Second)
	p.ttl = max(p.ttl, ttl)
	part := p.w.part(p.name, &o)
	if p.w.seed != 0 && !p.calm {
		p.w.disturb(part, ttl)
	}
	p.parts = append(p.parts, part)
	p.applyLocked()
	return part.Locker
}

// applyLocked brings the parts into the state of the process.
func (p *Process) applyLocked() {
	way := sim.Way(0)
	if p.cut != 0 {
		way = sim.Both
	}
	for _, part := range p.parts {
		for _, l := range part.Links() {
			l.Cut(way)
		}
		if p.paused != 0 {
			part.Freeze()
		} else {
			part.Thaw()
		}
	}
	switch paused := p.paused != 0; {
	case paused && p.resumed == nil:
		p.resumed = make(chan struct{})
	case !paused && p.resumed != nil:
		close(p.resumed)
		p.resumed = nil
	}
}

// Cut cuts the process off from the store: no call is answered, and no message arrives. The
// locks of the process are lost when the TTL is over, and then other processes get the keys.
func (p *Process) Cut() { p.setCut(byTest, true) }

// Mend ends Cut.
func (p *Process) Mend() { p.setCut(byTest, false) }

func (p *Process) setCut(by cause, cut bool) {
	p.set(&p.cut, by, cut, "is cut off from the store", "reaches the store again")
}

// Pause stops the process, as SIGSTOP or a swapping machine does: no call to the store goes
// on, no message arrives, no timer of a Locker fires, and every [Process.Step] waits for
// [Process.Resume]. If a lock is lost meanwhile, its context ends when the process goes on,
// and perhaps not before the next instructions.
func (p *Process) Pause() { p.setPaused(byTest, true) }

// Resume ends Pause.
func (p *Process) Resume() { p.setPaused(byTest, false) }

func (p *Process) setPaused(by cause, paused bool) {
	p.set(&p.paused, by, paused, "is paused", "is resumed")
}

// set begins or ends a cause of a fault. The fault lasts until no cause is left.
func (p *Process) set(causes *cause, by cause, on bool, begins, ends string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := *causes
	if *causes &^= by; on {
		*causes |= by
	}
	switch {
	case before == 0 && *causes != 0:
		p.note("%s", begins)
	case before != 0 && *causes == 0:
		p.note("%s", ends)
	}
	p.applyLocked()
}

// Step marks a point in the code at which the process may be paused. Call Step in the
// fake of a database, a file or another service, before the effect; registers do. Step
// waits while the process is paused. In [Explore] a step takes up to 20 ms, and now and
// then the process is paused, is cut off, or loses its locks there.
func (p *Process) Step() {
	p.await()
	p.w.strike(p)
	p.await()
}

// await waits while the process is paused.
func (p *Process) await() {
	for {
		p.mu.Lock()
		resumed := p.resumed
		p.mu.Unlock()
		if resumed == nil {
			return
		}
		<-resumed
	}
}

func (p *Process) close() {
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	for _, part := range parts {
		part.Close()
	}
}

func (p *Process) note(format string, args ...any) { p.w.note(p.name, format, args...) }

// draw returns a generator for the next step of the process.
func (p *Process) draw() *rand.Rand {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps++
	return p.w.sim.Rand("step", p.name, strconv.Itoa(p.steps))
}
