package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/ext/bench/internal/figures"
	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
	"github.com/holdfast-go/holdfast/ext/bench/internal/worker"
)

// A bench is something that all sides of a store do, by turns.
type bench struct {
	name                  string
	processes, goroutines int
	ownKeys               bool

	// timed says that a round is judged by the median of its times, which are of
	// what times names, and not by how many locks there were.
	timed bool
	times string

	turn func(b bench, ws []*worker.Worker, key string, s scale) (worker.Tally, error)
}

const held = "held"

var benches = []bench{
	{name: "alone", processes: 1, goroutines: 1, timed: true, times: "lock and unlock", turn: alone},
	{name: "hand-off", processes: 2, goroutines: 1, timed: true, times: "hand-off", turn: handOff},
	{name: "one-key", processes: 4, goroutines: 8, times: "wait", turn: crowd},
	{name: "distinct-keys", processes: 1, goroutines: 64, ownKeys: true, times: "wait", turn: crowd},
}

// at returns the bench as it is for a store, and whether it is possible there.
func (b bench) at(st stores.Store) (bench, bool) {
	if st.Only != "" && st.Only != b.name {
		return b, false
	}
	if st.OneProcess {
		b.processes, b.goroutines = 1, b.processes*b.goroutines
	}
	return b, b.name != "hand-off" || b.processes == 2
}

// contended reports whether goroutines vie for one key, and how fair that is says
// something of the lock.
func (b bench) contended() bool { return !b.timed && !b.ownKeys }

// title says what is done.
func (b bench) title() string {
	switch b.name {
	case "alone":
		return "Alone: one goroutine takes and gives back a lock that nobody else wants"
	case "hand-off":
		return "Hand-off: from before the unlock in one process to holding in another that has waited for a while"
	case "one-key":
		return fmt.Sprintf("One key: %d goroutines in %s", b.processes*b.goroutines, processes(b.processes))
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

// A scale says how long a run takes.
type scale struct {
	rounds   int
	each     time.Duration // of a round of a side
	handOffs int           // of a round of a side
	wait     time.Duration // how long who is handed a lock has waited, at most
	ttl      time.Duration

	held    int           // locks
	heldFor time.Duration // longer than the TTL
}

var (
	full = scale{
		rounds: 10, each: 300 * time.Millisecond, handOffs: 12, wait: 150 * time.Millisecond,
		ttl: 15 * time.Second, held: 10_000, heldFor: 30 * time.Second,
	}
	short = scale{
		rounds: 3, each: 100 * time.Millisecond, handOffs: 4, wait: 150 * time.Millisecond,
		ttl: 3 * time.Second, held: 500, heldFor: 5 * time.Second,
	}
)

// A result is what a side has got in all rounds.
type result struct {
	side   stores.Side
	rounds []float64 // locks a second, or seconds
	tally  worker.Tally
	cost   int // what all locks have cost the server
}

func (r result) locks() int { return figures.Sum(r.tally.Counts) }

// add adds a round.
func (r *result) add(b bench, t worker.Tally, cost int, s scale) {
	if b.timed {
		r.rounds = append(r.rounds, figures.Quantile(t.Times, 0.5).Seconds())
	} else {
		r.rounds = append(r.rounds, float64(figures.Sum(t.Counts))/s.each.Seconds())
	}
	r.tally.Add(t)
	r.cost += cost
}

func alone(_ bench, ws []*worker.Worker, key string, s scale) (worker.Tally, error) {
	r, err := ws[0].Do(worker.Order{Do: worker.Alone, Key: key, For: s.each})
	return r.Tally, err
}

// crowd lets goroutines of all processes lock and unlock for a while.
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

// handOff lets two processes pass on a lock.
func handOff(_ bench, ws []*worker.Worker, key string, s scale) (t worker.Tally, err error) {
	from, to := ws[0], ws[1]
	hold, free := worker.Order{Do: worker.Lock, Key: key}, worker.Order{Do: worker.Unlock}
	if _, err := from.Do(hold); err != nil {
		return t, err
	}
	for range s.handOffs {
		if err := to.Order(hold); err != nil {
			return t, err
		}
		<-time.After(time.Millisecond + rand.N(s.wait)) // it waits, at some point between two tries
		began, err := from.Do(free)
		if err != nil {
			return t, err
		}
		got, err := to.Report()
		if err != nil {
			return t, err
		}
		t.Times = append(t.Times, got.At.Sub(began.At))
		t.Hung += got.Tally.Hung
		t.Lost += began.Tally.Lost
		from, to = to, from
	}
	t.Counts = []int{s.handOffs + 1}
	_, err = from.Do(free)
	return t, err
}
