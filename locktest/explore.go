package locktest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/sim"
)

// A count is what has happened in worlds.
type count struct {
	locks, lost int
	steps       int
	trouble     int
	virtual     time.Duration
}

func (c *count) add(o count) {
	c.locks += o.locks
	c.lost += o.lost
	c.steps += o.steps
	c.trouble += o.trouble
	c.virtual += o.virtual
}

// Explore calls f like [Run], once for each seed from 1 to seeds. The seed chooses the faults
// of the world. Calls to the store are lost, late, repeated or not answered. At a
// [Process.Step] a process may be paused or cut off for up to two and a half TTLs, or lose
// every lock, up to 15 times. Faults end, so code with retries succeeds in the end. Calls
// for locks fail now and then: f judges only what has succeeded.
//
// Each seed is a subtest. Explore stops at the first seed that fails, and logs the events of
// the world and a command. The command runs the seed alone a hundred times, since a failing
// seed may pass: Go's scheduler chooses the order of two goroutines at the same instant.
//
// Explore fails if no lock was taken in any world.
func Explore(t *testing.T, seeds int, f func(t *testing.T, w *World)) {
	t.Helper()
	outside(t, "Explore")
	if seeds < 1 {
		t.Fatalf("locktest.Explore: %d seeds: it must be 1 at least", seeds)
	}
	var total count
	ran := 0
	for seed := 1; seed <= seeds; seed++ {
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			ran++
			synctest.Test(t, func(t *testing.T) {
				var w *World
				t.Cleanup(func() { total.add(w.counted()) }) // after the end of the world
				w = newWorld(t, seed)
				f(t, w)
			})
		})
		if !ok {
			t.Fatalf("seed %d has failed, after %d that passed. Run it alone, many times:\n\tgo test -run '^%s$/^seed=%d$' -count=100 -failfast",
				seed, ran-1, regexp.QuoteMeta(t.Name()), seed)
		}
	}
	if ran > 0 && total.locks == 0 {
		t.Fatalf("nothing is proved: no lock was taken in %d seeds. The code must use a Locker of its World", ran)
	}
	t.Logf("%d seeds: %d locks, of which %d were lost, %d steps, %d with trouble, %v of virtual time",
		ran, total.locks, total.lost, total.steps, total.trouble, total.virtual.Round(time.Second))
}

func (w *World) counted() count {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.virtual = time.Since(w.began)
	return w.count
}

// disturb gives the links of a process the manners that the seed says. The engine waits for
// an answer for a sixth of the TTL, or a second.
func (w *World) disturb(p *sim.Process, ttl time.Duration) {
	wait := min(ttl/6, time.Second)
	manners := []sim.Faults{
		{Delay: wait / 200},
		{Delay: wait / 20, Request: 0.05, Reply: 0.05, Twice: 0.05, Wake: 0.1, Refuse: 0.02, Reset: 0.02, Start: wait / 2},
		{Delay: wait / 2, Twice: 0.1, Wake: 0.1, Late: 0.1, Most: 5 * wait, Start: 2 * wait},
		{Delay: wait / 10, Request: 0.2, Reply: 0.2, Twice: 0.1, Wake: 0.2, Late: 0.1, Most: 2 * ttl, Start: 5 * wait},
	}
	chosen := manners[w.sim.Rand("manners", p.Name).IntN(len(manners))]
	for _, l := range p.Links() {
		l.Faults = chosen
	}
}

// most is how often a process gets into trouble, so that code with many steps and retries
// succeeds in the end.
const most = 15

func (p *Process) mayFail() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble++
	return p.trouble <= most
}

// step counts a step and reports whether nothing may happen there.
func (w *World) step() (calm bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.useLocked()
	w.count.steps++
	return w.calmed || w.seed == 0
}

// strike lets a step of a process take time, and may be the beginning of trouble.
func (w *World) strike(p *Process) {
	if w.step() {
		return
	}
	r := p.draw()
	time.Sleep(upto(r, 20*time.Millisecond))
	if r.IntN(w.odds) > 0 || !p.mayFail() {
		return
	}
	w.mu.Lock()
	w.count.trouble++
	w.mu.Unlock()
	d := upto(r, 5*p.longest()/2)
	switch r.IntN(4) {
	case 0, 1:
		p.setPaused(bySeed, true)
		time.AfterFunc(d, func() { p.setPaused(bySeed, false) })
	case 2:
		p.setCut(bySeed, true)
		time.AfterFunc(d, func() { p.setCut(bySeed, false) })
	case 3:
		for _, key := range p.keys() {
			_, _ = w.lose(key) // another may have been faster
		}
	}
}

func upto(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// longest returns the longest TTL of the process.
func (p *Process) longest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.ttl, 15*time.Second)
}

// keys returns the keys that the process holds.
func (p *Process) keys() (keys []string) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for _, g := range p.w.held {
		if g.p == p {
			keys = append(keys, g.key)
		}
	}
	return keys
}
