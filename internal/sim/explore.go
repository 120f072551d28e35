package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Explore runs the world of a seed.
func Explore(t *testing.T, seed uint64) *World {
	t.Helper()
	s := &scene{}
	return Run(t, seed, func(w *World) Store { return s.open(w) }, func(w *World) {
		began := time.Now()
		s.compose()
		w.Wait()
		w.Count.Seeds, w.Count.Virtual = 1, time.Since(began)
	})
}

// pick draws one of several values.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// A scene is the world of a seed.
type scene struct {
	course
	w      *World
	r      *rand.Rand
	server *Server // nil if the store is memlock
	keys   int
	slots  int // of the key that has slots
	still  bool
	manner []func(time.Duration) Faults
}

func (s *scene) open(w *World) Store {
	s.w, s.r = w, w.Rand("world")
	if s.r.IntN(2) == 0 {
		return Memory()(w)
	}
	s.server = Serve()(w).(*Server)
	return s.server
}

// compose draws processes, links, calls and faults.
func (s *scene) compose() {
	r := s.r
	s.course = newCourse(pick(r, 200*time.Millisecond, time.Second, time.Second, 3*time.Second, 15*time.Second))
	s.keys = pick(r, 1, 1, 1, 2, 3)
	s.slots = 2 + r.IntN(3)
	s.manner = []func(time.Duration) Faults{pick(r, lossy, slow, hostile)}
	switch r.IntN(6) {
	case 0:
		s.manner, s.still = []func(time.Duration) Faults{quiet}, true
	case 1, 2, 3:
		s.manner = append(s.manner, quiet, lossy, slow, hostile)
	}
	for i := range 2 + r.IntN(3) {
		s.process(string(rune('a' + i)))
	}
	go s.overdue(s.w)
	if s.still {
		s.calm()
		return
	}
	if r.IntN(2) == 0 {
		god := s.w.Process("god", &holdfast.Options{TTL: s.ttl})
		god.Go("1", s.befall)
	}
	last := func() {}
	if s.server != nil && r.IntN(2) == 0 { // No later fault ends the locks that the fail-over brings back.
		last = func() { s.failOver(s.w.Rand("last")) }
	}
	go s.calms(s.w, last, s.calm)
}

// calm makes the judge check progress. A key may be free while the grant travels, or until
// a polling process retries.
func (s *scene) calm() {
	bound := 100 * time.Millisecond
	for _, p := range s.w.Processes() {
		bound = max(bound, p.poll+100*time.Millisecond)
	}
	s.w.Judge.Calm(bound, settled)
}

// process adds a process and its goroutines.
func (s *scene) process(name string) {
	r := s.w.Rand("process", name)
	poll := pick(r, 500*time.Millisecond, 20*time.Millisecond)
	p := s.w.process(name, &holdfast.Options{TTL: s.ttl, Poll: poll}, r.IntN(5) == 0)
	if r.IntN(3) == 0 {
		p.Rate = 0.99 + 0.02*r.Float64()
	}
	for _, l := range p.Links() {
		l.Faults = pick(r, s.manner...)(s.ttl)
		switch {
		case s.still:
		case s.w.Now() >= s.length: // The process replaces a process that ended late.
			l.Calm()
		default:
			l.Plan = windows(s.w.Rand("cuts", name, l.name), s.ttl, s.length)
			s.w.Count.cuts(len(l.Plan))
		}
	}
	for n := range pick(r, 1, 2, 3, 8) {
		p.Go(fmt.Sprint(n+1), s.work)
	}
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

// befall draws faults of processes and the store, one after the other.
func (s *scene) befall(r *Routine) {
	for n := 0; ; n++ {
		r.Sleep(r.Upto(4 * s.ttl))
		if s.w.Now() >= s.length || s.w.ctx.Err() != nil {
			return
		}
		all := slices.DeleteFunc(s.w.Processes(), func(p *Process) bool { return p.Dead() || p == r.P })
		victim := all[r.Rand.IntN(len(all))]
		switch r.Rand.IntN(6) {
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
		case 4:
			s.breaks(r)
		case 5:
			if s.server != nil {
				s.failOver(r.Rand)
			}
		}
	}
}

// failOver loses the last writes of the server, often just after a release, which is then
// undone.
func (s *scene) failOver(r *rand.Rand) {
	s.server.awaitRelease(pick(r, 0, s.ttl))
	s.w.Count.add(&s.w.Count.FailOvers)
	s.w.Judge.Forgot(s.ttl*5/2 + s.ttl)
	s.server.FailOver(time.Millisecond + upto(r, time.Second))
}

// breaks breaks a claim, as an operator does.
func (s *scene) breaks(r *Routine) {
	key := fmt.Sprint("k", r.Rand.IntN(s.keys))
	ctx, cancel := r.Context(s.ttl)
	defer cancel()
	holders, err := r.P.Locker.Holders(ctx, key)
	if err != nil || len(holders) == 0 {
		return
	}
	s.w.Count.add(&s.w.Count.Breaks)
	id := holders[r.Rand.IntN(len(holders))].ID
	s.w.Judge.Broke(key, id)
	r.event(Event{Step: Fault, Call: "break", Key: key}, id)
	_ = r.P.Locker.Break(ctx, key, id)
}

// work is the loop of a goroutine: want a lock, hold, pause. When the faults are over,
// the goroutine wants each key once more.
func (s *scene) work(r *Routine) {
	for s.w.Now() < s.length && r.P.ctx.Err() == nil && !r.P.ended() {
		r.Sleep(r.Upto(s.ttl / 2))
		ctx, cancel := r.Context(r.Upto(5 * s.ttl))
		s.one(ctx, r)
		cancel()
	}
	if !s.still {
		s.rests(r)
	}
	var wants []Want
	for i := range s.keys {
		wants = append(wants, Want{Key: fmt.Sprint("k", i)})
	}
	s.again(r, wants)
}

// one draws a call and makes the call.
func (s *scene) one(ctx context.Context, r *Routine) {
	want := s.want(r)
	hold := r.Upto(pick(r.Rand, s.ttl/10, s.ttl, 5*s.ttl/2))
	switch r.Rand.IntN(12) {
	case 0:
		_ = r.Do(ctx, want, func(h *Held) { h.Hold(hold) })
		return
	case 1:
		keys := []string{"k0", "k1", "k2"}[:1+r.Rand.IntN(3)]
		want.Kind, want.Weight = Exclusive, 0
		want.Try = false
		all, _, err := r.LockAll(ctx, keys, want)
		if err != nil {
			return
		}
		for _, h := range all {
			h.Hold(hold / time.Duration(len(all)))
		}
		for _, h := range all {
			_ = h.Unlock()
		}
		return
	}
	h, err := r.Lock(ctx, want)
	if err != nil {
		return
	}
	h.Hold(hold)
	if r.Rand.IntN(8) == 0 && h.Look() {
		h.Enter(r.Upto(s.ttl / 2))
		h.Hold(r.Upto(s.ttl / 2))
	}
	_ = h.Unlock()
}

// want draws a lock.
func (s *scene) want(r *Routine) Want {
	want := Want{Key: fmt.Sprint("k", r.Rand.IntN(s.keys))}
	switch r.Rand.IntN(8) {
	case 0, 1:
		want.Kind = Shared
	case 2:
		want.Kind, want.Slots = Slots, s.slots
		want.Weight = 1 + r.Rand.IntN(s.slots)
	}
	switch r.Rand.IntN(8) {
	case 0, 1:
		want.Try = true
	case 2:
		want.Wait = 1 + r.Upto(2*s.ttl)
	case 3:
		want.Tries, want.Every = 1+r.Rand.IntN(5), r.Upto(s.ttl/2)
	}
	switch r.Rand.IntN(12) {
	case 0:
		want.NoRenew = true
	case 1:
		want.MaxHold = 1 + r.Upto(2*s.ttl)
	case 2:
		want.AtLeast = 1 + r.Upto(2*s.ttl)
	case 3:
		want.Note = "a note"
	case 4:
		want.TTL = max(s.ttl/2, holdfast.MinTTL)
	}
	return want
}
