package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A backend is a store beside those that [Explore] composes, and what it takes.
type backend struct {
	make   func(w *World) Store
	ttls   []time.Duration
	locks  []Kind
	manner []func(time.Duration) Faults
	cuts   int  // of a link, at most
	stops  bool // processes may be frozen: all of their calls go through Send
}

// explore runs the world of a seed.
func (b *backend) explore(t *testing.T, seed uint64) *World {
	t.Helper()
	return Run(t, seed, b.make, func(w *World) {
		began := time.Now()
		r := w.Rand("world")
		p := &play{backend: b, course: newCourse(pick(r, b.ttls...)), w: w, keys: pick(r, 1, 1, 2)}
		p.compose(r)
		w.Wait()
		w.Count.Seeds, w.Count.Virtual = 1, time.Since(began)
	})
}

// A calming store says how long a key may be free while somebody waits for it, and how long
// it takes until a call has its place in line, when it is calm. 0: the store has no line.
type calming interface {
	calm() (idle, place time.Duration)
}

// A failing store can lose what was written last, or all of it.
type failing interface{ fail(r *rand.Rand) }

// A play is what a seed makes of a world of a backend.
type play struct {
	*backend
	course
	w      *World
	keys   int
	manner []func(time.Duration) Faults
}

// compose draws processes, their links, what their goroutines do, and what befalls them.
func (p *play) compose(r *rand.Rand) {
	p.w.lasts(p.ttl)
	if s, ok := p.w.store.(interface {
		plan(ttl, length time.Duration)
	}); ok {
		s.plan(p.ttl, p.length)
	}
	p.settle += p.w.longest
	p.manner = p.backend.manner
	if r.IntN(2) == 0 {
		p.manner = []func(time.Duration) Faults{pick(r, p.manner...)}
	}
	for i := range 2 + r.IntN(3) {
		p.process(string(rune('a' + i)))
	}
	if r.IntN(2) == 0 {
		god := p.w.Process("god", &holdfast.Options{TTL: p.ttl})
		god.Go("1", p.befall)
	}
	go p.calms(p.w, func() {}, func() { p.w.Judge.Calm(p.w.store.(calming).calm()) })
	go p.overdue(p.w)
}

// process adds a process and its goroutines.
func (p *play) process(name string) {
	r := p.w.Rand("process", name)
	process := p.w.Process(name, &holdfast.Options{TTL: p.ttl})
	for _, l := range process.Links() {
		l.Faults = pick(r, p.manner...)(p.ttl)
		plan := windows(p.w.Rand("cuts", name, l.name), p.ttl, p.length)
		l.Plan = append(l.Plan, plan[:min(len(plan), p.cuts)]...)
		atomic.AddInt64(&p.w.Count.Cuts, int64(len(l.Plan)))
	}
	for n := range 1 + r.IntN(3) {
		process.Go(fmt.Sprint(n+1), p.work)
	}
}

// befall is what befalls processes and the store, by turns. The locks that a store has
// forgotten are not judged until their leases have ended.
func (p *play) befall(r *Routine) {
	for n := 0; ; n++ {
		r.Sleep(r.Upto(4 * p.ttl))
		if p.w.Now() >= p.length || p.w.ctx.Err() != nil {
			return
		}
		all := slices.DeleteFunc(p.w.Processes(), func(o *Process) bool { return o.Dead() || o == r.P })
		victim := all[r.Rand.IntN(len(all))]
		switch store, fails := p.w.store.(failing); r.Rand.IntN(3) {
		case 0:
			if p.stops {
				r.halts(victim, 3*p.ttl)
			}
		case 1:
			p.w.Count.add(&p.w.Count.Kills)
			victim.Kill()
			p.process(fmt.Sprint(victim.Name[:1], n))
		case 2:
			if fails {
				p.w.Count.add(&p.w.Count.FailOvers)
				p.w.Judge.Forgot(p.ttl + time.Second)
				store.fail(r.Rand)
			}
		}
	}
}

// work is what a goroutine does: it wants locks, holds them, and pauses. When the faults are
// over, it wants each lock once more.
func (p *play) work(r *Routine) {
	for p.w.Now() < p.length && r.P.ctx.Err() == nil {
		r.Sleep(r.Upto(p.ttl / 2))
		want := pick(r.Rand, p.wants(pick(r.Rand, p.locks...))...)
		switch r.Rand.IntN(4) {
		case 0:
			want.Try = true
		case 1:
			want.Wait = 1 + r.Upto(2*p.ttl)
		}
		ctx, cancel := r.Context(r.Upto(5 * p.ttl))
		if held, err := r.Lock(ctx, want); err == nil {
			held.Hold(r.Upto(pick(r.Rand, p.ttl/10, p.ttl, 5*p.ttl/2)))
			_ = held.Unlock()
		}
		cancel()
	}
	p.rests(r)
	p.again(r, p.wants(p.locks...))
}

// wants are the locks of some kinds.
func (p *play) wants(kinds ...Kind) (wants []Want) {
	for _, kind := range kinds {
		if kind == Slots {
			wants = append(wants, Want{Key: "s", Kind: Slots, Slots: 2})
			continue
		}
		for i := range p.keys {
			wants = append(wants, Want{Key: fmt.Sprint("k", i), Kind: kind})
		}
	}
	return wants
}

// A drift is the clock of a server, which does not count as fast as the world does.
type drift struct {
	rate float64 // seconds that it counts in one of the world
	base time.Time
}

func newDrift(r *rand.Rand) drift { return drift{0.99 + 0.02*r.Float64(), time.Now()} }

// at is the time of the server at t.
func (d drift) at(t time.Time) time.Time {
	return d.base.Add(time.Duration(float64(t.Sub(d.base)) * d.rate))
}

// later calls f in a while, which the world does not end before, unless stop is called.
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
