package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// either is the store in memory, or a server that can fail over.
func either(w *World) Store {
	if w.Rand("store").IntN(2) == 0 {
		return Memory()(w)
	}
	return Serve()(w)
}

// A Stage is a world for code that is built on locks, such as leader election. Processes
// are stopped, killed, closed and replaced, the store fails over, and links have faults.
// Then the faults end, and the code has to make progress.
type Stage struct {
	World *World
	TTL   time.Duration

	// Start starts the goroutines of a process. The play sets Start.
	Start func(p *Process)

	// Forgot, if set, is called when the store has lost writes of up to a second before.
	Forgot func()

	scene
}

// Still reports whether the world has no faults.
func (s *Stage) Still() bool { return s.still }

// Faulty reports whether faults may still begin.
func (s *Stage) Faulty() bool { return !s.still && !s.over() }

// Calm is the time when the faults and their aftermath are over.
func (s *Stage) Calm() time.Duration {
	if s.still {
		return 0
	}
	return s.length + s.settle
}

// Above runs the world of a seed for code that is built on locks. play sets Stage.Start.
// Links names the links of a process besides the link to the store.
func Above(t *testing.T, seed uint64, play func(s *Stage), links ...string) *World {
	t.Helper()
	return Run(t, seed, either, func(w *World) {
		r := w.Rand("world")
		s := &Stage{World: w, TTL: pick(r, time.Second, 3*time.Second)}
		s.scene = scene{
			course: newCourse(s.TTL), w: w, still: r.IntN(6) == 0, polls: []time.Duration{500 * time.Millisecond}, drifts: true, cuts: 6,
			manner: []func(time.Duration) Faults{pick(r, lossy, slow, hostile), quiet},
			links:  links,
			start:  func(p *Process, _ *rand.Rand) { s.Start(p) },
		}
		if s.still {
			s.manner = []func(time.Duration) Faults{quiet}
		}
		if _, ok := w.store.(failing); ok {
			s.acts = append(s.acts, func(r *Routine) {
				s.fails(r.Rand)
				if s.Forgot != nil {
					s.Forgot()
				}
			})
		}
		play(s)
		s.begin(r, func() {}, func() {})
		w.Wait()
		w.Count.Seeds, w.Count.Virtual = 1, w.Now()
	})
}
