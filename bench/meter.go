package main

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
)

// A meter counts the cost of the locks of a side for the server. The meter leaves out the
// cost of reading, and messages that only keep connections or sessions alive.
type meter struct {
	count func(stores.Side) int // nil if nothing counts
	own   int                   // cost of one reading
	idle  float64               // a second
}

// newMeter counts for a while the cost of an idle server.
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

// cost returns the growth of a count that locks have caused within a time.
func (m meter) cost(before, after int, within time.Duration) float64 {
	return max(0, float64(after-before-m.own)-m.idle*within.Seconds())
}

// start begins to measure the cost of a side, until stop is called.
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
