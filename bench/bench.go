package main

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/figures"
	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// A bench is a piece of work that all sides of a store do by turns.
type bench struct {
	name                  string
	processes, goroutines int
	ownKeys               bool
	apart                 bool // the bench says nothing within one process
	late                  bool // a hand-off after a long wait

	// timed says that a round is judged by the median of the times, not by the number of
	// locks. times names what is timed.
	timed bool
	times string

	turn func(b bench, ws []*worker.Worker, key string, s scale) (worker.Tally, error)
}

const held = "held"

var benches = []bench{
	{name: "alone", processes: 1, goroutines: 1, timed: true, times: "lock and unlock", turn: alone},
	{name: "hand-off", processes: 2, goroutines: 1, apart: true, timed: true, times: "hand-off", turn: handOff},
	{name: "late-hand-off", processes: 2, goroutines: 1, apart: true, late: true, timed: true, times: "hand-off", turn: handOff},
	{name: "one-key", processes: 4, goroutines: 8, times: "wait", turn: crowd},
	{name: "one-each", processes: 4, goroutines: 1, apart: true, times: "wait", turn: crowd},
	{name: "distinct-keys", processes: 1, goroutines: 64, ownKeys: true, times: "wait", turn: crowd},
}

// at adapts the bench to a store, and reports whether the bench says anything there.
func (b bench) at(st stores.Store) (bench, bool) {
	if st.Only != "" && st.Only != b.name || b.late && !st.Polls {
		return b, false
	}
	if st.OneProcess {
		b.processes, b.goroutines = 1, b.processes*b.goroutines
	}
	return b, !st.OneProcess || !b.apart
}

// contended reports whether goroutines contend for one key, so that the fairness says
// something about the lock.
func (b bench) contended() bool { return !b.timed && !b.ownKeys }

// waits reports whether a goroutine waits for a lock.
func (b bench) waits() bool { return b.processes*b.goroutines > 1 && !b.ownKeys }

// title describes the bench.
func (b bench) title(s scale) string {
	switch b.name {
	case "alone":
		return "Alone: one goroutine takes and gives back a lock that nobody else wants"
	case "hand-off":
		return "Hand-off: from before the unlock in one process to holding in another that has waited for a while"
	case "late-hand-off":
		return fmt.Sprintf("Late hand-off: the same after a wait of %v to %v, of %d keys at about the same time", s.late, s.late*3/2, lateKeys)
	case "one-key":
		return fmt.Sprintf("One key: %d goroutines in %s", b.processes*b.goroutines, processes(b.processes))
	case "one-each":
		return fmt.Sprintf("One key, one goroutine each: %s, so that every lock comes from the store", processes(b.processes))
	default:
		return fmt.Sprintf("Distinct keys: %d goroutines in one process, each with its own", b.goroutines)
	}
}

func processes(n int) string {
	if n == 1 {
		return "one process"
	}
	return fmt.Sprintf("%d processes", n)
}

// A result is the result of a side in all rounds.
type result struct {
	side   stores.Side
	rounds []float64 // locks a second, or seconds
	fair   []float64 // fewest locks of a goroutine / most, if enough locks
	tally  worker.Tally
	cost   float64 // cost of all locks for the server
}

// add adds a round.
func (r *result) add(b bench, t worker.Tally, cost float64, s scale) {
	locks := figures.Sum(t.Counts)
	if b.timed {
		r.rounds = append(r.rounds, figures.Quantile(t.Times, 0.5).Seconds())
	} else {
		r.rounds = append(r.rounds, float64(locks)/s.each.Seconds())
	}
	if b.contended() && locks >= enough*len(t.Counts) {
		r.fair = append(r.fair, figures.Fairness(t.Counts))
	}
	t.Counts = nil // the counts belong to this round only
	r.tally.Join(t)
	r.cost += cost
}

// fairness returns the median of the rounds, or NaN if too few rounds have enough locks.
func (r result) fairness() float64 {
	if 2*len(r.fair) < len(r.rounds) || len(r.fair) == 0 {
		return math.NaN()
	}
	return figures.Quartiles(r.fair).Median
}

func alone(_ bench, ws []*worker.Worker, key string, s scale) (worker.Tally, error) {
	r, err := ws[0].Do(worker.Order{Do: worker.Alone, Key: key, For: s.each})
	return r.Tally, err
}

// crowd makes goroutines of all processes lock and unlock for a while.
func crowd(b bench, ws []*worker.Worker, key string, s scale) (all worker.Tally, err error) {
	for _, w := range ws {
		o := worker.Order{Do: worker.Crowd, Key: key, OwnKeys: b.ownKeys, Goroutines: b.goroutines, For: s.each}
		if err := w.Order(o); err != nil {
			return all, err
		}
	}
	for _, w := range ws {
		r, err := w.Report()
		if err != nil {
			return all, err
		}
		all.Join(r.Tally)
	}
	return all, nil
}

// handOff makes two processes hand over a lock to each other. If b.late, several keys are
// handed over.
func handOff(b bench, ws []*worker.Worker, key string, s scale) (t worker.Tally, err error) {
	hold := worker.Order{Do: worker.Lock, Key: key, Locks: 1}
	free := worker.Order{Do: worker.Unlock, For: s.wait} // at some point between two tries
	wait, times := time.Millisecond, s.handOffs
	if b.late {
		wait, times = s.late, 1
		hold.Locks, free.For = lateKeys, s.late/2
	}
	from, to := ws[0], ws[1]
	if _, err := from.Do(hold); err != nil {
		return t, err
	}
	for range times {
		if err := to.Order(hold); err != nil {
			return t, err
		}
		<-time.After(wait)
		began, err := from.Do(free)
		if err != nil {
			return t, err
		}
		got, err := to.Report()
		if err != nil {
			return t, err
		}
		for i, at := range got.At {
			took := at.Sub(began.At[i])
			t.Times = append(t.Times, took)
			if took < 0 {
				t.Twice++
			}
		}
		t.Hung += got.Tally.Hung
		t.Lost += began.Tally.Lost
		from, to = to, from
	}
	t.Had = hold.Locks * (times + 1)
	_, err = from.Do(free)
	return t, err
}
