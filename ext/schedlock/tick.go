package schedlock

import (
	"errors"
	"fmt"
	"time"
)

// A Schedule says when a job is due. Those of github.com/robfig/cron are Schedules.
type Schedule interface {
	// Next returns the first tick after t. It depends on t alone, so that all
	// replicas agree, and is the same for all times between two ticks. Every tick
	// has a next.
	Next(t time.Time) time.Time
}

// Every returns the Schedule of an interval: the ticks are its multiples since the
// beginning of the year 1, in UTC, such as all full minutes.
func Every(interval time.Duration) Schedule { return multiples(interval) }

type multiples time.Duration

func (m multiples) Next(t time.Time) time.Time {
	return t.Truncate(time.Duration(m)).Add(time.Duration(m))
}

const (
	longestGap  = 5 * 366 * 24 * time.Hour // what cron looks ahead
	longestEdge = time.Second
)

// A tick is one time at which a job is due.
type tick struct {
	at  time.Time
	gap time.Duration // to the next
}

// due returns the tick that is due, seen by a clock that says now: timers may be a
// little early.
func due(s Schedule, now time.Time, tolerance time.Duration) (tick, error) {
	next := s.Next(now)
	gap := s.Next(next).Sub(next)
	switch {
	case !next.After(now) || gap <= 0:
		return tick{}, fmt.Errorf("the schedule has no tick after %v", now)
	case !s.Next(now.Add(next.Sub(now) / 2)).Equal(next):
		return tick{}, errors.New("the schedule counts from when it is asked, so that replicas cannot agree: use Every")
	}
	edge := min(gap/10, longestEdge, tolerance)
	at := last(s, now.Add(edge), gap)
	if at.IsZero() {
		return tick{}, fmt.Errorf("the schedule has no tick before %v", now)
	}
	return tick{at: at, gap: s.Next(at).Sub(at)}, nil
}

// last returns the last tick that is not after t; zero if there is none for years. It
// has to look from some time before, at first as long as one gap.
func last(s Schedule, t time.Time, gap time.Duration) time.Time {
	for back := gap; back < 2*longestGap; back *= 2 {
		at := s.Next(t.Add(-back))
		if at.IsZero() || at.After(t) {
			continue
		}
		for next := s.Next(at); next.After(at) && !next.After(t); next = s.Next(at) {
			at = next
		}
		return at
	}
	return time.Time{}
}
