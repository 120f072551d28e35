package linear

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

var oneSeed = flag.Uint64("seed", 0, "run this seed, and no other")

const (
	ttl    = time.Second
	length = 20 * ttl
)

// TestWorlds checks the history of each of 200 worlds, or of 80 in the short form. A history that
// takes too long on a busy machine is reported.
func TestWorlds(t *testing.T) {
	first, last := sim.NewSeed(), uint64(200)
	if testing.Short() {
		last = 80
	}
	if *oneSeed > 0 {
		first, last = *oneSeed, 1
	}
	ops, grants, refusals := 0, int64(0), 0
	for seed := first; seed < first+last; seed++ {
		h := &history{}
		w := sim.Run(t, seed, store(seed), h.play)
		wrong, proved := h.check()
		switch wrong {
		case "":
		case undecided:
			unproved.Logf(t, "seed %d: %s", seed, wrong)
		default:
			t.Errorf("%s", wrong)
		}
		if t.Failed() {
			t.Fatalf("again: go test ./cmd/holdfast-verify/internal/linear -run ^TestWorlds$ -args -seed=%d", seed)
		}
		ops, grants, refusals = ops+len(h.ops), grants+w.Count.Grants, refusals+proved
	}
	t.Logf("%d seeds: %d operations, %d grants, %d refusals without an excuse", last, ops, grants, refusals)
	if grants == 0 || refusals == 0 {
		t.Error("nothing is proved")
	}
}

func store(seed uint64) func(w *sim.World) sim.Store {
	if seed%2 == 0 {
		return sim.Memory()
	}
	return sim.Serve()
}

// play composes a world with one lock and one register, and waits for its end. Nothing arrives
// twice: a second request may be granted after its call was refused.
func (h *history) play(w *sim.World) {
	h.w = w
	r := w.Rand("world")
	h.tries = r.IntN(2) == 0
	faults := []sim.Faults{
		{Delay: 2 * time.Millisecond},
		{Delay: ttl / 50, Request: 0.1, Reply: 0.1, Wake: 0.2, Refuse: 0.02, Reset: 0.02, Start: ttl / 10},
		{Delay: ttl / 8, Wake: 0.1, Late: 0.1, Most: ttl, Start: ttl / 2},
	}[r.IntN(3)]
	for i := range 2 + r.IntN(2) {
		h.process(string(rune('a'+i)), faults)
	}
	if r.IntN(2) == 0 {
		w.Process("god", nil).Go("1", func(r *sim.Routine) { h.befall(r, faults) })
	}
	w.Wait()
}

func (h *history) process(name string, faults sim.Faults) {
	p := h.w.Process(name, &holdfast.Options{TTL: ttl, Poll: 20 * time.Millisecond})
	p.Link("store").Faults = faults
	faults.Most = 3 * ttl // A write may arrive after the lease has ended.
	p.Link("register").Faults = faults
	for n := range 1 + h.w.Rand("process", name).IntN(2) {
		p.Go(fmt.Sprint(n+1), func(r *sim.Routine) { h.work(r) })
	}
}

// work is what a goroutine does: it wants the lock, holds it, and pauses.
func (h *history) work(r *sim.Routine) {
	for h.w.Now() < length && h.w.Context().Err() == nil {
		r.Sleep(1 + r.Upto(ttl/2))
		ctx, cancel := r.Context(r.Upto(3 * ttl))
		h.turn(ctx, r, h.tries || r.Rand.IntN(2) == 0, r.Upto([]time.Duration{ttl / 10, ttl, 2 * ttl}[r.Rand.IntN(3)]))
		cancel()
	}
}

// befall stops, suspends and kills processes.
func (h *history) befall(r *sim.Routine, faults sim.Faults) {
	for n := 0; h.w.Now() < length && h.w.Context().Err() == nil; n++ {
		r.Sleep(r.Upto(4 * ttl))
		all := h.w.Processes()
		victim := all[r.Rand.IntN(len(all))]
		if victim == r.P || victim.Dead() {
			continue
		}
		switch r.Rand.IntN(3) {
		case 0:
			victim.Freeze()
		case 1:
			victim.Suspend()
		case 2:
			victim.Kill()
			h.process(fmt.Sprint(victim.Name[:1], n), faults)
		}
		r.Sleep(r.Upto(3 * ttl))
		victim.Thaw()
	}
}

// A planted store has one mistake.
type planted struct {
	driver.Store
	acquire func(driver.Ask, driver.Grant) driver.Grant
	release func(driver.Store, context.Context, []driver.Release) []error
}

func (p planted) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := p.Store.Acquire(ctx, a)
	if err == nil && p.acquire != nil {
		g = p.acquire(a, g)
	}
	return g, err
}

func (p planted) Release(ctx context.Context, rs []driver.Release) []error {
	if p.release != nil {
		return p.release(p.Store, ctx, rs)
	}
	return p.Store.Release(ctx, rs)
}

// plants has all processes use a planted store.
type plants struct {
	sim.Store
	planted planted
}

func (s plants) Connect(p *sim.Process) driver.Store {
	store := s.planted
	store.Store = s.Store.Connect(p)
	return store
}

// Porcupine finds each mistake. The judge of the world is not asked.
func TestMistakesAreFound(t *testing.T) {
	for name, mistake := range map[string]planted{
		"a claim is granted beside another": {acquire: func(a driver.Ask, g driver.Grant) driver.Grant {
			if !g.OK && g.Fence == 0 {
				return driver.Grant{OK: true, Fence: uint64(time.Now().UnixMicro()), TTL: a.TTL}
			}
			return g
		}},
		"tokens do not grow": {acquire: func(_ driver.Ask, g driver.Grant) driver.Grant {
			g.Fence = min(g.Fence, 1)
			return g
		}},
		"a claim is refused beside none": {acquire: func(_ driver.Ask, g driver.Grant) driver.Grant {
			if g.Fence%5 == 0 {
				return driver.Grant{}
			}
			return g
		}},
		"a release is forgotten": {release: func(driver.Store, context.Context, []driver.Release) []error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			seek(t, func(w *sim.World) sim.Store { return plants{sim.Serve()(w), mistake} }, false)
		})
	}
	t.Run("the register takes old tokens", func(t *testing.T) { seek(t, sim.Serve(), true) })
}

// seek fails if no history of some worlds is wrong.
func seek(t *testing.T, store func(w *sim.World) sim.Store, careless bool) {
	for seed := range uint64(200) {
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			w := sim.New(t, seed, store)
			defer w.End()
			h := &history{register: register{careless: careless}}
			h.play(w)
			wrong, _ = h.check()
		})
		if strings.HasPrefix(wrong, "the history is not linearizable") {
			t.Logf("found by seed %d", seed)
			return
		}
	}
	t.Error("no history is wrong")
}
