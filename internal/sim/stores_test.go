package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A backend is a store, and what the store takes.
type backend struct {
	make    func(w *World) Store
	ttls    []time.Duration
	least   time.Duration // the shortest TTL
	kinds   []Kind        // of locks, by how often
	atLeast int           // the longest MinHold, in TTLs; 0: the claims end with their client
	manner  []func(time.Duration) Faults
	cuts    int // of a link, at most
	polls   []time.Duration
	crowds  []int // of goroutines of a process
	drifts  bool
}

// A calming store says how long a key may be free while a call waits for the key, and how
// long a call takes to enter the queue of the store, when the world is calm. 0: the store
// has no FIFO order.
type calming interface {
	calm() (idle, place time.Duration)
}

// A planning store draws its own faults.
type planning interface {
	plan(ttl, length time.Duration)
}

// explore runs the world of a seed.
func (b *backend) explore(t *testing.T, seed uint64) *World {
	t.Helper()
	return Run(t, seed, b.make, func(w *World) {
		began := time.Now()
		newPlay(b, w).compose()
		w.Wait()
		w.Count.Seeds, w.Count.Virtual = 1, time.Since(began)
	})
}

// A play is the world of a seed on a backend.
type play struct {
	scene
	*backend
	r     *rand.Rand
	keys  []string
	slots int // of a key with slots, at most
}

func newPlay(b *backend, w *World) *play {
	r := w.Rand("world")
	p := &play{backend: b, r: r, slots: 2 + r.IntN(3)}
	p.keys = []string{"k0", "k1", "k2"}[:pick(r, 1, 1, 1, 2, 3)]
	p.scene = scene{
		course: newCourse(pick(r, b.ttls...)), w: w, still: r.IntN(6) == 0,
		polls: b.polls, drifts: b.drifts, cuts: b.cuts, manner: b.manner, start: p.goroutines,
	}
	switch {
	case p.still:
		p.scene.manner = []func(time.Duration) Faults{quiet}
	case r.IntN(2) == 0:
		p.scene.manner = []func(time.Duration) Faults{pick(r, b.manner...)}
	}
	return p
}

// compose draws the processes, what their goroutines do, and the faults.
func (p *play) compose() {
	p.w.lasts(p.ttl * time.Duration(max(p.atLeast, 1)))
	if s, ok := p.w.store.(planning); ok && !p.still {
		s.plan(p.ttl, p.length)
	}
	p.settle += p.w.longest
	p.acts = append(p.acts, func(r *Routine) { p.breaks(r, p.keys) })
	if _, ok := p.w.store.(failing); ok {
		p.acts = append(p.acts, func(r *Routine) { p.fails(r.Rand) })
	}
	last := func() {}
	if p.r.IntN(2) == 0 { // No later fault ends the locks that a fail-over brings back.
		last = func() { p.fails(p.w.Rand("last")) }
	}
	p.begin(p.r, last, p.calm)
}

// calm makes the judge check progress. A key may be free while the grant travels, or until
// a polling process retries.
func (p *play) calm() {
	idle, place := p.w.store.(calming).calm()
	for _, o := range p.w.Processes() {
		idle = max(idle, o.poll+100*time.Millisecond)
	}
	p.w.Judge.Calm(idle, place)
}

func (p *play) goroutines(o *Process, r *rand.Rand) {
	for n := range pick(r, p.crowds...) {
		o.Go(fmt.Sprint(n+1), p.work)
	}
}

// calm implements [calming] for [Memory] and [Serve].
func (*memory) calm() (idle, place time.Duration) { return 100 * time.Millisecond, settled }
func (*Server) calm() (idle, place time.Duration) { return 100 * time.Millisecond, settled }

// A drift is the clock of a server, which does not count as fast as the world does.
type drift struct {
	rate float64 // seconds that the clock counts in a second of the world
	base time.Time
}

func newDrift(r *rand.Rand) drift { return drift{0.99 + 0.02*r.Float64(), time.Now()} }

// at is the time of the server at t.
func (d drift) at(t time.Time) time.Time {
	return d.base.Add(time.Duration(float64(t.Sub(d.base)) * d.rate))
}

// later calls f after d. The world does not end before the call, unless stop is called.
func later(w *World, d time.Duration, f func()) (stop func()) {
	w.flight.Add(1)
	timer := time.AfterFunc(d, func() {
		defer w.flight.Done()
		f()
	})
	return func() {
		if timer.Stop() {
			w.flight.Done()
		}
	}
}

// stream is a manner of links on which nothing arrives twice, as TCP promises.
func stream(manner func(time.Duration) Faults) func(time.Duration) Faults {
	return func(ttl time.Duration) Faults {
		f := manner(ttl)
		f.Twice = 0
		return f
	}
}
