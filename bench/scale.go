package main

import "time"

// A scale says how long a run takes.
type scale struct {
	warm     int // goroutines that use a side before its first round
	rounds   int
	each     time.Duration // of a round of a side
	longest  time.Duration // of a round of a slow side
	handOffs int           // of a round of a side
	wait     time.Duration // longest wait before a lock is handed over
	late     time.Duration // shortest long wait; a long wait takes at most half as much more
	ttl      time.Duration // well above the waits: not every side renews
	waiting  int           // most clients that wait for one key
	idle     time.Duration // how long to watch an idle server

	held    int           // locks
	heldFor time.Duration // longer than the TTL
}

var (
	full = scale{
		warm: 64, rounds: 7, each: 300 * time.Millisecond, longest: 2500 * time.Millisecond,
		handOffs: 8, wait: 150 * time.Millisecond, late: 2 * time.Second,
		ttl: 15 * time.Second, waiting: 1000, idle: 6 * time.Second, held: 10_000, heldFor: 20 * time.Second,
	}

	// With a thousand clients, sides that renew fail to do so within the short TTL.
	short = scale{
		warm: 64, rounds: 3, each: 100 * time.Millisecond, longest: 500 * time.Millisecond,
		handOffs: 4, wait: 150 * time.Millisecond, late: time.Second,
		ttl: 3 * time.Second, waiting: 100, idle: time.Second, held: 500, heldFor: 5 * time.Second,
	}
)

// enough is how many locks a round needs for each goroutine, on average, to show whether
// all goroutines get equally many.
const enough = 20

// lateKeys are handed over at the same time after a long wait. Waiting costs nothing but
// time.
const lateKeys = 8

// first returns the scale of a turn that does not count.
func (s scale) first() scale {
	s.each, s.handOffs, s.late = s.each/4, max(s.handOffs/4, 1), s.late/20
	return s
}

// of returns the scale for a side that had so many locks within a time. If goroutines
// contend, slow sides get longer rounds.
func (s scale) of(b bench, locks int, within time.Duration) scale {
	if !b.contended() {
		s.each = s.each * 2 / 3
		return s
	}
	if b.long {
		s.each *= 10
	}
	const more = 1.25 // rounds differ
	want := more * enough * float64(b.all())
	takes := time.Duration(want / float64(max(locks, 1)) * float64(within))
	s.each = max(s.each, min(takes, s.longest))
	return s
}

// times returns the number of rounds.
func (s scale) times(b bench) int {
	if b.late || b.long || b.waiting > 0 {
		return (s.rounds + 2) / 3
	}
	return s.rounds
}
