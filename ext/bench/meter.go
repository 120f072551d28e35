package main

import (
	"time"

	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
)

// A meter tells what the locks of a side have cost the server. It leaves out what
// reading it costs, and what clients send only to keep their connections or sessions.
type meter struct {
	count func(stores.Side) int // nil if nothing counts
	own   int                   // what one reading costs
	idle  float64               // a second
}

// newMeter watches for a while what a server counts when nobody locks.
func newMeter(count func(stores.Side) int, any stores.Side, while time.Duration) meter {
	m := meter{count: count}
	if count == nil {
		return m
	}
	m.own = -count(any)
	m.own += count(any)
	began, before := time.Now(), count(any)
	<-time.After(while)
	after := count(any)
	spent := time.Since(began)
	m.idle = m.cost(before, after, spent) / spent.Seconds()
	return m
}

// cost returns what a count has grown by for the sake of locks within a time.
func (m meter) cost(before, after int, within time.Duration) float64 {
	return max(0, float64(after-before-m.own)-m.idle*within.Seconds())
}

// start begins to measure what a side costs, until stop is called.
func (m meter) start(side stores.Side) (stop func() float64) {
	if m.count == nil {
		return func() float64 { return 0 }
	}
	began, before := time.Now(), m.count(side)
	return func() float64 {
		spent := time.Since(began)
		return m.cost(before, m.count(side), spent)
	}
}
