package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/figures"
	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
	"github.com/holdfast-go/holdfast/internal/publish"
)

// A bench is a piece of work for the sides of a store, by turns.
type bench struct {
	name                  string
	processes, goroutines int
	ownKeys               bool
	newKeys               bool          // every lock is the first of its key
	apart                 bool          // the bench says nothing within one process
	late                  bool          // a hand-off after a long wait
	pace                  time.Duration // of the work under the lock, and of the pause between two locks
	waiting               int           // clients that wait for the holder of the key
	long                  bool          // few and long rounds: a process that has its turn keeps the key for many locks

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
	{name: "one-each", processes: 4, goroutines: 1, apart: true, long: true, times: "wait", turn: crowd},
	{name: "paced", processes: 4, goroutines: 1, apart: true, pace: time.Millisecond, times: "wait", turn: crowd},
	{name: "waiting-1", processes: 2, apart: true, waiting: 1, times: "wait", turn: crowd},
	{name: "waiting-10", processes: 4, apart: true, waiting: 10, times: "wait", turn: crowd},
	{name: "waiting-100", processes: 4, apart: true, waiting: 100, times: "wait", turn: crowd},
	{name: "waiting-1000", processes: 4, apart: true, waiting: 1000, times: "wait", turn: crowd},
	{name: "distinct-keys", processes: 1, goroutines: 64, ownKeys: true, times: "wait", turn: crowd},
	{name: "many-keys", processes: 1, goroutines: 1000, ownKeys: true, times: "wait", turn: crowd},
	{name: "new-keys", processes: 1, goroutines: 64, ownKeys: true, newKeys: true, times: "wait", turn: crowd},
}

// at adapts the bench to a store, and reports whether the bench makes sense there.
func (b bench) at(st stores.Store) (bench, bool) {
	if len(st.Only) > 0 && !slices.Contains(st.Only, b.name) || b.late && !st.Polls || b.waiting > st.Waiting {
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
func (b bench) waits() bool { return b.all() > 1 && !b.ownKeys }

// all returns the number of goroutines over the processes.
func (b bench) all() int { return max(b.processes*b.goroutines, b.waiting+1) }

// measures reports whether a side differs in the bench from the sides before it. The benches
// with many clients take long, so they leave out sides that differ only in the pause.
func (b bench) measures(s stores.Side) bool { return !s.Patient || b.waits() && b.waiting == 0 }

// title describes the bench.
func (b bench) title(s scale) string {
	switch b.name {
	case "alone":
		return "Alone: one goroutine acquires and releases a lock that nobody else wants"
	case "hand-off":
		return "Hand-off: from before the unlock in one process to holding in another that has waited for a while"
	case "late-hand-off":
		return fmt.Sprintf("Late hand-off: the same after a wait of %v to %v, of %d keys at about the same time", s.late, s.late*3/2, lateKeys)
	case "one-key":
		return fmt.Sprintf("One key: %d goroutines in %s", b.processes*b.goroutines, processes(b.processes))
	case "one-each":
		return fmt.Sprintf("One key, one goroutine each: %s", processes(b.processes))
	case "paced":
		return fmt.Sprintf("Paced: %s with one goroutine each, which hold the key for %v and then do something else for %v",
			processes(b.processes), b.pace, b.pace)
	case "distinct-keys":
		return fmt.Sprintf("Distinct keys: %d goroutines in one process, each with its own", b.goroutines)
	case "many-keys":
		return fmt.Sprintf("Many keys: %s goroutines in one process, each with its own", publish.Thousands(b.goroutines))
	case "new-keys":
		return fmt.Sprintf("New keys: %d goroutines in one process, and every lock is the first of its key", b.goroutines)
	default:
		return fmt.Sprintf("%s waiting: on one key, each with a client of its own, in %s",
			publish.Thousands(b.waiting), processes(b.processes))
	}
}

func processes(n int) string {
	if n == 1 {
		return "one process"
	}
	return fmt.Sprintf("%d processes", n)
}

// A result is the result of a side over the rounds.
type result struct {
	side   stores.Side
	rounds []float64 // locks a second, or seconds
	fair   []float64 // fewest locks of a goroutine / most, if enough locks
	tally  worker.Tally
	cost   float64       // of the locks, for the server
	cpu    time.Duration // of the servers, for the locks
}

// add adds a round.
func (r *result) add(b bench, t worker.Tally, u usage, s scale) {
	locks := figures.Sum(t.Counts)
	switch {
	case b.timed:
		r.rounds = append(r.rounds, figures.Quantile(t.Times, 0.5).Seconds())
	case b.waiting > 0: // most have their only lock after the end
		r.rounds = append(r.rounds, float64(t.Had)/u.took.Seconds())
	default:
		r.rounds = append(r.rounds, float64(locks)/s.each.Seconds())
	}
	if b.contended() && locks >= enough*len(t.Counts) {
		r.fair = append(r.fair, figures.Fairness(t.Counts))
	}
	t.Counts = nil // the counts belong to this round only
	r.tally.Join(t)
	r.cost += u.cost
	r.cpu += u.cpu
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

// crowd makes the goroutines of every process lock and unlock for a while.
func crowd(b bench, ws []*worker.Worker, key string, s scale) (all worker.Tally, err error) {
	for i, w := range ws {
		o := worker.Order{
			Do: worker.Crowd, Key: key, OwnKeys: b.ownKeys, NewKeys: b.newKeys, Pace: b.pace,
			Goroutines: max(b.goroutines, b.clients(i)), For: s.each,
		}
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

// gather opens the clients of a bench that has clients of its own.
func (b bench) gather(ws []*worker.Worker) error { return b.each(ws, worker.Gather) }

// scatter closes the clients of gather.
func (b bench) scatter(ws []*worker.Worker) error { return b.each(ws, worker.Scatter) }

// each gives an order about clients to the workers in sequence: a server accepts new
// connections slowly.
func (b bench) each(ws []*worker.Worker, do worker.Deed) error {
	for i, w := range ws {
		if n := b.clients(i); n > 0 {
			if _, err := w.Do(worker.Order{Do: do, Key: b.name + "-warm", Clients: n}); err != nil {
				return err
			}
		}
	}
	return nil
}

// clients returns how many clients of the bench are in process i; 0: all goroutines of a
// process share one.
func (b bench) clients(i int) int {
	if b.waiting == 0 {
		return 0
	}
	return (b.waiting + 1 + i) / b.processes
}

// handOff makes two processes hand a lock over and back. If b.late, several keys are handed
// over.
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
