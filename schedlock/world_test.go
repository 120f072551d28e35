package schedlock

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sim"
)

var worlds = sim.NewSeeds(flag.CommandLine, "./schedlock")

// TestSchedlock runs a job on replicas in simulated worlds. Links have faults, the store
// fails over, the clocks of the replicas differ, and replicas are stopped, killed, closed
// and replaced. No tick is run twice. When the faults are over, every tick is run in time.
func TestSchedlock(t *testing.T) {
	worlds.Run(t, 0.05, 30, func(t *testing.T, seed uint64) *sim.World { return sim.Above(t, seed, replicas) })
}

// A plan is what the replicas of a world run.
type plan struct {
	*sim.Stage
	interval  time.Duration
	tolerance time.Duration
	overlap   Overlap
	began     time.Time
	ends      time.Duration // when the replicas end

	mu   sync.Mutex
	runs map[time.Time]*run // by tick
	lost []time.Duration    // when the store has lost writes
}

// A run is the first run of a tick.
type run struct {
	replica string
	at      time.Duration
}

func replicas(s *sim.Stage) {
	r := s.World.Rand("schedule")
	p := &plan{Stage: s, interval: 2 * s.TTL, began: time.Now(), runs: make(map[time.Time]*run)}
	p.tolerance = 3 * p.interval
	p.overlap = []Overlap{Skip, Skip, Delay, Allow}[r.IntN(4)]
	p.ends = s.Calm() + 12*p.interval
	s.Start = p.start
	s.Forgot = p.forgot
	for at := s.Calm() + p.tolerance; at < p.ends-p.tolerance; at += p.interval {
		tick := p.began.Add(at).Truncate(p.interval)
		s.World.After(p.due(tick), func() { p.ran(tick) })
	}
}

// start lets a process run the job at each tick. The clock of the process differs from the
// clocks of the others by less than the tolerance.
func (p *plan) start(o *sim.Process) {
	r := p.World.Rand("clock", o.Name)
	off := time.Duration(r.Int64N(int64(p.spread()))) - p.spread()/2
	rate := 1 + 0.002*(r.Float64()-0.5)
	job := Job{
		Locks: o.Locker, Name: "job", Schedule: Every(p.interval), Tolerance: p.tolerance, Overlap: p.overlap,
		Clock: func() time.Time {
			return p.began.Add(off + time.Duration(float64(time.Since(p.began))*rate))
		},
	}
	o.Go("1", func(r *sim.Routine) {
		ctx, cancel := r.Context(p.ends - p.World.Now())
		defer cancel()
		_ = job.Loop(ctx, func(ctx context.Context) error { return p.run(ctx, r) })
	})
}

// spread is by how much the clocks differ at most when the world begins.
func (p *plan) spread() time.Duration { return p.tolerance / 2 }

// run is the job.
func (p *plan) run(ctx context.Context, r *sim.Routine) error {
	tick, ok := Tick(ctx)
	p.World.Count.Granted()
	r.Event(sim.Event{Step: sim.Begin, Call: "tick", Key: "job"}, tick)
	p.note(r.P.Name, tick, ok)
	longest := p.interval / 4 // no tick is due meanwhile on this replica
	if p.Faulty() {
		longest = p.interval * 3 / 2
	}
	r.Sleep(r.Upto(longest))
	r.Event(sim.Event{Step: sim.End, Call: "tick", Key: "job"}, ctx.Err())
	return ctx.Err()
}

// note notes a run, and checks that the tick was not run before.
func (p *plan) note(replica string, tick time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tick = tick.UTC()
	before := p.runs[tick]
	switch {
	case !ok:
		p.World.Judge.Fail("job", "schedule", replica, "runs without a tick")
	case before == nil:
		p.runs[tick] = &run{replica, p.World.Now()}
	case !p.forgotten(before.at):
		p.World.Judge.Fail("job", "schedule", replica, fmt.Sprintf("runs tick %v, which %s has run at %v", tick, before.replica, before.at))
	}
}

// forgot notes that the store has lost writes.
func (p *plan) forgot() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = append(p.lost, p.World.Now())
}

// forgotten reports whether the store may have lost the key of a tick that was run at a
// time. The key is written before the run: by three TTLs at most, since a call to the store
// takes no longer.
func (p *plan) forgotten(at time.Duration) bool {
	for _, lost := range p.lost {
		if at > lost-2*time.Second && at < lost+3*p.TTL {
			return true
		}
	}
	return false
}

// due is when a tick has been run, once the faults are over: when the slowest clock has
// come to the tick.
func (p *plan) due(tick time.Time) time.Duration {
	return tick.Sub(p.began) + p.spread() + time.Second
}

// ran checks that a tick was run.
func (p *plan) ran(tick time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs[tick.UTC()] == nil && p.World.Context().Err() == nil {
		p.World.Judge.Fail("job", "progress", "", fmt.Sprintf("nobody has run tick %v by %v", tick, p.World.Now()))
	}
}
