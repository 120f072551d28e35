package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
)

// An engineClock is what the processes take for the clock of the register.
type engineClock struct {
	kind  string
	drift drift
	ahead time.Duration // of the world

	most time.Duration // by which a wrong clock is wrong, each way
	far  time.Duration // by which all wrong clocks are ahead until they are first set
	late time.Duration // A swap arrives within this time after it was decided.

	// Guarded by register.mu.
	sets  int       // how often the wrong clocks were set
	until time.Time // A swap that was decided before the first set arrives until then.
}

// The kinds of clocks.
const (
	ownClock    = "own"   // of the world
	toldClock   = "told"  // the register tells its time, and Now may fail
	wrongClocks = "wrong" // the time of each process is wrong by another amount
)

func newEngineClock(r *rand.Rand) engineClock {
	return engineClock{
		kind: pick(r, ownClock, toldClock, wrongClocks), drift: newDrift(r),
		ahead: pick(r, 0, time.Hour, -time.Hour, 30*365*24*time.Hour),
	}
}

// plan implements [planning]. No message is late by more than 7 TTL, so a record is not removed
// sooner than that after its claims and its token have ended. A wrong clock is wrong by less than
// half of that.
func (s *register) plan(ttl, _ time.Duration) {
	r := s.w.Rand("engine")
	if s.clock.kind == wrongClocks {
		s.clock.most, s.clock.far, s.clock.late = 3*ttl, pick(r, 0, 200*ttl), 12*ttl
	}
	if s.clock.most > 0 || r.IntN(2) == 0 {
		s.spare = 8 * ttl
	}
}

// keeps notes for how long the register has to keep a record. The world is too short for the hour
// that is always part of keep. A swap that was decided by a clock far ahead does not know how long its
// token is ahead of the other clocks, so its record stays until the next swap. The caller holds mu.
func (s *register) keeps(key string, keep time.Duration) {
	delete(s.ends, key)
	far := s.clock.far > 0 && (s.clock.sets == 0 || time.Now().Before(s.clock.until))
	if s.spare > 0 && !far {
		s.ends[key] = time.Now().Add(keep - time.Hour + s.spare)
	}
}

// expire removes a record that the register need not keep any longer. The caller holds mu.
func (s *register) expire(key string) {
	end, ok := s.ends[key]
	if !ok || time.Now().Before(end) {
		return
	}
	delete(s.ends, key)
	s.w.Trace.add(Event{Step: Fault, Call: "remove", Key: key}, nil)
	s.put(key, nil, time.Time{})
}

// setClocks sets the wrong clocks, and reports whether there are any. After a removal by hand,
// tokens of wrong clocks could fall.
func (s *register) setClocks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock.most == 0 {
		return false
	}
	if s.clock.sets++; s.clock.sets == 1 {
		s.clock.until = time.Now().Add(s.clock.late)
	}
	s.w.Trace.add(Event{Step: Fault, Call: "set the clocks"}, nil)
	return true
}

// Now implements [caslock.Clock].
func (s *register) Now(context.Context) (time.Time, error) {
	if s.clock.kind == toldClock {
		return s.clock.drift.at(time.Now()).Add(s.clock.ahead), nil
	}
	return time.Now(), nil
}

// Now implements [caslock.Clock]. Each answer is younger than the call: a token may depend on the
// time after a removal by hand.
func (f *farRegister) Now(ctx context.Context) (time.Time, error) {
	switch {
	case f.clock.kind == toldClock:
		micros, err := ask(ctx, f.link, "now", "", func() (int64, error) {
			now, err := f.register.Now(ctx)
			return now.UnixMicro(), err
		})
		return time.UnixMicro(micros), err
	case f.clock.most > 0:
		f.mu.Lock()
		sets := f.clock.sets
		f.mu.Unlock()
		wrong := upto(f.w.Rand("clock", f.link.p.Name, fmt.Sprint(sets)), 2*f.clock.most) - f.clock.most
		if sets == 0 {
			wrong += f.clock.far
		}
		return time.Now().Add(wrong), nil
	}
	return time.Now(), nil
}

var (
	_ caslock.Clock = localRegister{}
	_ caslock.Clock = (*farRegister)(nil)
	_ caslock.Clock = farWatcher{}
	_ planning      = (*register)(nil)
)
