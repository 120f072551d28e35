package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A scene is what the worlds of all random tests share: processes whose links have faults
// for the length of a course, and a process god that stops, kills, closes and replaces
// processes.
type scene struct {
	course
	w      *World
	still  bool            // the world has no faults
	polls  []time.Duration // of processes whose store cannot push; nil: the store is as it is
	drifts bool            // the clocks of some processes drift; otherwise those of the servers do
	cuts   int             // of a link, at most
	links  []string        // of a process, besides those of the store
	manner []func(time.Duration) Faults
	start  func(p *Process, r *rand.Rand) // starts the goroutines of a process
	acts   []func(r *Routine)             // further acts of god
}

// pick draws one of several values.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// begin adds the processes of the world, and lets the faults end in time. When the faults
// are over, begin calls last; when the aftermath is over, begin calls judge.
func (s *scene) begin(r *rand.Rand, last, judge func()) {
	for i := range 2 + r.IntN(3) {
		s.process(string(rune('a' + i)))
	}
	go s.overdue(s.w)
	if s.still {
		judge()
		return
	}
	if r.IntN(2) == 0 {
		s.w.Process("god", &holdfast.Options{TTL: s.ttl}).Go("1", s.befall)
	}
	go s.calms(s.w, last, judge)
}

// process adds a process and its goroutines.
func (s *scene) process(name string) {
	r := s.w.Rand("process", name)
	opts := &holdfast.Options{TTL: s.ttl}
	polls := s.polls != nil && r.IntN(5) == 0
	if polls {
		opts.Poll = pick(r, s.polls...)
	}
	p := s.w.process(name, opts, polls)
	if s.drifts && r.IntN(3) == 0 {
		p.Rate = 0.99 + 0.02*r.Float64()
	}
	for _, link := range s.links {
		p.Link(link)
	}
	for _, l := range p.Links() {
		l.Faults = pick(r, s.manner...)(s.ttl)
		switch {
		case s.still:
		case s.w.Now() >= s.length: // The process replaces a process that ended late.
			l.Calm()
		default:
			plan := windows(s.w.Rand("cuts", name, l.name), s.ttl, s.length)
			l.Plan = append(l.Plan, plan[:min(len(plan), s.cuts)]...)
			s.w.Count.cuts(len(l.Plan))
		}
	}
	s.start(p, r)
}

// The manners of links, for a TTL.
func quiet(time.Duration) Faults { return Faults{Delay: 2 * time.Millisecond} }

func lossy(ttl time.Duration) Faults {
	return Faults{Request: 0.1, Reply: 0.1, Twice: 0.05, Wake: 0.2, Refuse: 0.02, Reset: 0.02, Delay: ttl / 50, Start: ttl / 10}
}

func slow(ttl time.Duration) Faults {
	return Faults{Twice: 0.1, Wake: 0.1, Cut: 0.1, Late: 0.05, Delay: ttl / 8, Most: 3 * ttl, Start: ttl / 2}
}

func hostile(ttl time.Duration) Faults {
	return Faults{Request: 0.2, Reply: 0.2, Twice: 0.2, Wake: 0.3, Refuse: 0.05, Reset: 0.05, Cut: 0.05, Late: 0.2, Delay: ttl / 10, Most: 2 * ttl, Start: ttl}
}

// windows draws the cuts of a link.
func windows(r *rand.Rand, ttl, length time.Duration) (plan []Window) {
	for range r.IntN(7) {
		from := upto(r, length)
		plan = append(plan, Window{
			From: from, To: from + upto(r, 4*ttl),
			Way: pick(r, Out, Back, Both), Holds: r.IntN(2) == 0,
		})
	}
	return plan
}

// befall draws faults of processes and further acts, one after the other.
func (s *scene) befall(r *Routine) {
	for n := 0; ; n++ {
		r.Sleep(r.Upto(4 * s.ttl))
		if s.over() {
			return
		}
		all := slices.DeleteFunc(s.w.Processes(), func(p *Process) bool { return p.ended() || p == r.P })
		victim := all[r.Rand.IntN(len(all))]
		switch act := r.Rand.IntN(4 + len(s.acts)); act {
		case 0, 1:
			r.halts(victim, 3*s.ttl)
		case 2:
			s.w.Count.add(&s.w.Count.Kills)
			victim.Kill()
			s.process(fmt.Sprint(victim.Name[:1], n))
		case 3:
			s.w.Count.add(&s.w.Count.Closes)
			victim.Close()
			s.process(fmt.Sprint(victim.Name[:1], n))
		default:
			s.acts[act-4](r)
		}
	}
}

// over reports whether the faults of the world are over.
func (s *scene) over() bool { return s.w.Now() >= s.length || s.w.ctx.Err() != nil }

// A failing store can lose the last writes, or all writes. The store tells the judge how
// long the locks may be in doubt, and reports whether it has lost any.
type failing interface {
	fail(r *rand.Rand, ttl time.Duration) (failed bool)
}

// fails lets the store lose writes, if the store can.
func (s *scene) fails(r *rand.Rand) {
	if store, ok := s.w.store.(failing); ok && store.fail(r, s.ttl) {
		s.w.Count.add(&s.w.Count.Failures)
	}
}

// breaks breaks a claim of one of several keys, as an operator does.
func (s *scene) breaks(r *Routine, keys []string) {
	key := pick(r.Rand, keys...)
	ctx, cancel := context.WithTimeout(r.P.ctx, s.ttl)
	defer cancel()
	holders, err := r.P.Locker.Holders(ctx, key)
	if err != nil || len(holders) == 0 {
		return
	}
	s.w.Count.add(&s.w.Count.Breaks)
	id := holders[r.Rand.IntN(len(holders))].ID
	s.w.Judge.Breaks(key, id)
	r.Event(Event{Step: Fault, Call: "break", Key: key}, id)
	if r.P.Locker.Break(ctx, key, id) == nil {
		s.w.Judge.Broke(key, id)
	}
}
