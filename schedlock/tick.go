package schedlock

import (
	"errors"
	"fmt"
	"time"
)

// A Schedule says when a job is due. Schedules of github.com/robfig/cron are Schedules.
type Schedule interface {
	// Next returns the first tick after t. The result depends on t alone, so that all
	// replicas agree, and is the same for all times between two ticks. Every tick has a
	// next tick.
	Next(t time.Time) time.Time
}

// Every returns the Schedule of an interval: the ticks are the multiples of the interval
// since the beginning of the year 1, in UTC, such as all full minutes.
func Every(interval time.Duration) Schedule { return multiples(interval) }

type multiples time.Duration

func (m multiples) Next(t time.Time) time.Time {
	return t.Truncate(time.Duration(m)).Add(time.Duration(m))
}

const (
	longestGap  = 5 * 366 * 24 * time.Hour // how far cron looks ahead
	longestEdge = time.Second
	quarter     = 15 * time.Minute // clocks are changed at the beginning of a quarter of an hour, and at no other time
)

// A tick is a time at which a job is due.
type tick struct {
	at  time.Time
	gap time.Duration // to the next tick
}

// due returns the due tick for a clock that shows now: timers may be a little early.
func due(s Schedule, now time.Time, tolerance time.Duration) (tick, error) {
	if err := sound(s, now); err != nil {
		return tick{}, err
	}
	next := upcoming(s, now)
	gap := upcoming(s, next).Sub(next)
	if gap <= 0 {
		return tick{}, fmt.Errorf("the schedule has no tick after %v", now)
	}
	edge := min(gap/10, longestEdge, tolerance)
	at := last(s, now.Add(edge), gap)
	if at.IsZero() {
		return tick{}, fmt.Errorf("the schedule has no tick before %v", now)
	}
	return tick{at: at, gap: upcoming(s, at).Sub(at)}, nil
}

// sound refuses a schedule if replicas cannot agree about its next tick. Near a clock
// change that cron's schedules do not expect, a tick of the next three days is enough.
func sound(s Schedule, now time.Time) error {
	err := fmt.Errorf("the schedule has no tick after %v", now)
	for days := range time.Duration(4) {
		from := now.Add(days * day)
		next := s.Next(from)
		switch {
		case !next.After(from):
		case isTick(s, next):
			return nil
		default:
			err = errors.New("the schedule counts from when it is asked, so that replicas cannot agree: use Every")
		}
	}
	return err
}

// isTick reports whether the schedule has a tick at t, asked right before t. If asked
// from a much earlier time, cron's schedules miss and invent ticks on the other side of a
// clock change by a step other than an hour.
func isTick(s Schedule, t time.Time) bool { return s.Next(t.Add(-1)).Equal(t) }

// upcoming returns the first tick after t, zero if there is none. On the other side of a
// clock change the result may be a later tick: call upcoming again within a minute.
func upcoming(s Schedule, t time.Time) time.Time {
	next := s.Next(t)
	if next.IsZero() {
		return next
	}
	for minute := t.Truncate(time.Minute).Add(time.Minute); minute.Sub(t) <= 2*time.Minute; minute = minute.Add(time.Minute) {
		if at := s.Next(minute.Add(-1)); at.After(t) && (at.Before(next) || !next.After(t)) {
			next = at
		}
	}
	for begin := t.Truncate(quarter); begin.Sub(t) < day; begin = begin.Add(quarter) {
		if next.After(t) && isTick(s, next) {
			return next
		}
		next = s.Next(begin.Add(quarter - 1))
	}
	return time.Time{}
}

// last returns the last tick that is not after t; zero if there is none for years. last
// asks the schedule from the beginning of each quarter of an hour, and later from ever
// further back, at first by a gap or a day.
func last(s Schedule, t time.Time, gap time.Duration) time.Time {
	if at := lastFrom(s, t.Truncate(time.Second).Add(-1), t); !at.IsZero() {
		return at
	}
	for begin := t.Truncate(quarter); t.Sub(begin) < 2*day; begin = begin.Add(-quarter) {
		if at := lastFrom(s, begin.Add(-1), t); !at.IsZero() {
			return at
		}
	}
	for back := max(gap, day); back < 2*longestGap; back *= 2 {
		if at := lastFrom(s, t.Add(-back), t); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// lastFrom returns the last tick after from that is not after t, zero if there is none.
func lastFrom(s Schedule, from, t time.Time) (at time.Time) {
	for next := s.Next(from); next.After(from) && !next.After(t); next = s.Next(next) {
		if isTick(s, next) {
			at = next
		}
		from = next
	}
	return at
}
