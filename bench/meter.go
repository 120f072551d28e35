package main

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A meter counts the cost of the locks of a side for the server. The meter leaves out the
// cost of reading, and messages that only keep connections or sessions alive.
type meter struct {
	count func(stores.Side) int // nil if nothing counts
	own   int                   // cost of one reading
	idle  float64               // a second

	workers []int // process ids, which are not those of servers
}

// A usage is the time that locks have taken, and what they have cost the servers.
type usage struct {
	took time.Duration
	cost float64
	cpu  time.Duration // 0 if the system does not tell
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

// start begins to measure what the locks of a side cost, until stop is called.
func (m meter) start(side stores.Side) (stop func() usage) {
	began := time.Now()
	if m.count == nil {
		return func() usage { return usage{took: time.Since(began)} }
	}
	before, spent := m.count(side), m.spent()
	return func() usage {
		u := usage{took: time.Since(began), cpu: m.spent() - spent}
		u.cost = m.cost(before, m.count(side), u.took)
		return u
	}
}

// spent returns the processor time of the servers.
func (m meter) spent() time.Duration {
	spent, err := servers.Spent(m.workers)
	if err != nil {
		return 0
	}
	return spent
}
