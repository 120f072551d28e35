package schedlock

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// TestWorlds runs a job on replicas in simulated worlds: links have faults, clocks differ,
// and one replica is stopped now and then. No tick is run twice, and some are run.
func TestWorlds(t *testing.T) {
	first, worlds := sim.NewSeed(), uint64(5)
	if *seed != 0 {
		first, worlds = *seed, 1
	}
	run := first
	defer func() {
		if t.Failed() {
			t.Logf("again, in schedlock: go test -run ^TestWorlds$ -args -seed=%d", run)
		}
	}()
	for n := uint64(0); n < worlds && !t.Failed(); n++ {
		run = first + n
		sim.Run(t, run, sim.Memory(), ticks)
	}
}

var seed = flag.Uint64("seed", 0, "run the world of this seed, and no other")

const (
	interval  = 10 * time.Second
	tolerance = 30 * time.Second
)

// A runs is what the replicas of a world have run.
type runs struct {
	w *sim.World

	mu   sync.Mutex
	runs map[time.Time]string // by tick: who has run a tick
}

func ticks(w *sim.World) {
	r := w.Rand("schedule")
	length := 30 * interval
	all := &runs{w: w, runs: make(map[time.Time]string)}
	for i := range 2 + r.IntN(3) {
		p := w.Process(string(rune('a'+i)), &holdfast.Options{TTL: 3 * time.Second})
		for _, l := range p.Links() {
			l.Faults = sim.Faults{Request: 0.1, Reply: 0.1, Twice: 0.1, Late: 0.05, Delay: 100 * time.Millisecond, Most: 4 * time.Second}
			from := time.Duration(r.Int64N(int64(length)))
			l.Plan = []sim.Window{{From: from, To: from + 2*interval, Way: sim.Both}}
		}
		off := time.Duration(r.Int64N(int64(tolerance))) - tolerance/2
		job := Job{
			Locks: p.Locker, Name: "job", Schedule: Every(interval), Tolerance: tolerance,
			Clock: func() time.Time { return time.Now().Add(off) },
		}
		p.Go("1", func(r *sim.Routine) {
			ctx, cancel := r.Context(length)
			defer cancel()
			_ = job.Loop(ctx, func(ctx context.Context) error { return all.run(ctx, r) })
		})
	}
	victim := w.Processes()[0]
	w.Process("god", nil).Go("1", func(r *sim.Routine) {
		for w.Now() < length && w.Context().Err() == nil {
			r.Sleep(r.Upto(4 * interval))
			victim.Freeze()
			r.Sleep(r.Upto(interval))
			victim.Thaw()
		}
	})
	w.Wait()
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.runs) == 0 {
		w.Judge.Fail("job", "schedule", "", fmt.Sprintf("no tick has run in %v", w.Now()))
	}
}

// run is the job.
func (a *runs) run(ctx context.Context, r *sim.Routine) error {
	tick, ok := Tick(ctx)
	a.mu.Lock()
	before, twice := a.runs[tick]
	a.runs[tick] = r.P.Name
	a.mu.Unlock()
	if twice || !ok {
		a.w.Judge.Fail("job", "schedule", r.P.Name, fmt.Sprintf("runs tick %v, which %s has run", tick, before))
	}
	r.Sleep(r.Upto(interval * 3 / 2))
	return ctx.Err()
}
