package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rules"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// historyRules run random workloads, record what every client knew and when, and search
// the record for an order that the contract forbids.
var historyRules = []rule{
	// Random calls of many clients find the races that no single rule describes. The
	// recorded history must have an order that the contract allows.
	{
		name:  "history/crashes",
		words: "Clients that act at once, cancel, break or crash never exceed a limit. Tokens grow with every grant, and no claim ends early.",
		check: func(e *env, _, _ *client) { e.work(true, (*workload).sound) },
	},
	// The same workload without faults, so that order and wake-ups can be judged. A store
	// that lets a claim pass now and then fails here; in a bubble, so does a store that loses
	// one wake-up in twenty.
	{
		name:  "history/calm",
		words: "Without crashes every waiter is granted, in FIFO order if the store has a queue, and no waiter sleeps past the release that lets it in.",
		check: func(e *env, _, _ *client) { e.work(false, (*workload).calm) },
	},
}

// A workload is a set of clients that act at random as the core would.
type workload struct {
	*env
	history
	seed    uint64
	crashes bool
	keys    []string
}

// seed determines the choices of a workload. Another run can make the same choices, but
// cannot run the goroutines in the same order.
func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("DRIVERTEST_SEED"), 10, 64); err == nil {
		return n
	}
	return rand.Uint64()
}

// rounds is n times DRIVERTEST_ROUNDS, if set, or n divided by thrift.
func (e *env) rounds(n int) int {
	if times, err := strconv.Atoi(os.Getenv("DRIVERTEST_ROUNDS")); err == nil && times > 0 {
		return n * times
	}
	return (n + e.thrift() - 1) / e.thrift()
}

// thrift is by how much the short form divides the rounds. In a bubble a round costs little, unless
// the store is heavy.
func (e *env) thrift() int {
	switch {
	case !testing.Short() || e.harness.Bubble && !e.harness.Heavy:
		return 1
	case e.harness.Heavy && !e.harness.Bubble:
		return 8
	}
	return 4
}

// work lets clients act at random as the core would, and judges the recorded history.
func (e *env) work(crashes bool, judge func(*workload) error) {
	w := &workload{env: e, seed: seed(), crashes: crashes}
	for i := range 3 {
		w.keys = append(w.keys, fmt.Sprint(e.key, "/", i))
	}
	n := e.rounds(15)
	if e.harness.Bubble {
		n = e.rounds(80)
	}
	err := rules.Caught(func() { w.run(n) })
	if err == nil {
		err = judge(w)
	}
	if err != nil {
		rules.Fail(fmt.Errorf("with DRIVERTEST_SEED=%d: %w", w.seed, err))
	}
}

// run lets 15 workers make n rounds each, and more rounds while fewer than a tenth of
// 15 * n claims were granted. A run that still has too few claims after five times patience
// is not proved: the machine may be slow. The clock of a bubble is never slow.
func (w *workload) run(n int) {
	var workers []func()
	began, enough := now(), n*15/10
	for range 3 {
		c := w.client()
		defer w.hears(c)()
		for range 5 {
			rng := rand.New(rand.NewPCG(w.seed, uint64(len(workers))))
			workers = append(workers, func() {
				for i := 0; i < n || w.grants() < enough && time.Since(began) < 5*patience; i++ {
					w.round(c, rng)
				}
			})
		}
	}
	w.together(workers...)
	if got := w.grants(); got < enough {
		few := fmt.Sprintf("only %d claims were granted, fewer than the %d that would tell something", got, enough)
		if w.harness.Bubble {
			w.failf("%s", few)
		}
		unproved.Logf(w.tb, "%s", few)
	}
}

// sound looks for too much weight at once and for tokens that do not grow.
func (w *workload) sound() error {
	for _, ts := range w.byKey() {
		if err := overlap(ts, w.slack()); err != nil {
			return err
		}
		if !w.has(Tokens) {
			continue
		}
		if err := disorder(ts); err != nil {
			return err
		}
	}
	return nil
}

// calm is sound, and also looks for a waiter that nobody woke, and for a claim that passed the
// queue. Only in a bubble is it certain whether a wake-up or a request came first.
func (w *workload) calm() error {
	if err := w.sound(); err != nil {
		return err
	}
	if w.harness.Bubble {
		if err := w.slept(); err != nil {
			return err
		}
	}
	if !w.has(Queue | Crowd) {
		return nil
	}
	var late error
	for _, ts := range w.byKey() {
		err := passed(ts)
		if err != nil && !errors.As(err, new(doubt)) {
			return err
		}
		late = cmp.Or(late, err)
	}
	return late
}

// claim asks for a random claim. The first key is for exclusive claims, the second for
// readers and writers, the third for slots.
func (w *workload) claim(rng *rand.Rand) driver.Ask {
	i := rng.IntN(len(w.keys))
	name := fmt.Sprintf("%x", rng.Uint32())
	a := w.exclusive(name)
	switch {
	case i == 1 && w.has(Readers) && rng.IntN(3) > 0:
		a = w.reader(name)
	case i == 2 && w.has(Slots):
		a = w.slot(name, 1+rng.Int64N(2), 3)
	}
	a.Span = 1 + rng.IntN(16)
	a.Wait = rng.IntN(4) > 0
	return on(w.keys[i], lasting(a, w.short()))
}

// round asks for a random claim, holds the claim for a while and releases it, or gives
// up, or vanishes.
func (w *workload) round(c *client, rng *rand.Rand) {
	claim := w.claim(rng)
	crash := w.crashes && w.has(Expiry) && rng.IntN(40) == 0
	t := tenure{claim: claim, born: now(), asked: now()}
	ok := false
	if claim.Wait {
		ctx, cancel := context.WithTimeout(context.Background(), w.endurance(rng))
		t, ok = c.lock(ctx, claim)
		cancel()
	} else {
		ok = c.tries(&t)
	}
	if ok {
		// Now and then an operator breaks the claim of a healthy holder.
		w.hold(c, &t, rng)
		if w.crashes && w.has(Inspect) && rng.IntN(30) == 0 {
			c.forfeits(&t)
		}
	} else if claim.Wait && !w.crashes && t.patient() {
		w.fail(w.quick(), "%s was not granted within %v", show(claim), patience)
	}
	if !crash { // else neither a holder nor a waiter tells the store that it has gone
		c.unlocks(&t)
		w.free(claim.Key)
	}
	if ok {
		w.add(t)
	}
}

// endurance is how long a waiter waits: mostly as long as it takes. Every third waiter gives up
// soon, often at its turn, and must not take the turn along.
func (w *workload) endurance(rng *rand.Rand) time.Duration {
	if rng.IntN(3) == 0 {
		return time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
	}
	return patience
}

// patient reports whether a claim that gave up had waited for as long as any waiter does.
func (t *tenure) patient() bool { return time.Since(t.born) > patience/2 }

// hold keeps a tenure for a random time, and renews the tenure as often as necessary. Most
// tenures are short, so that many grants are judged, and one in fifty outlasts its TTL.
func (w *workload) hold(c *client, t *tenure, rng *rand.Rand) {
	for range rng.IntN(3) {
		<-time.After(time.Duration(rng.Int64N(int64(8 * time.Millisecond))))
	}
	if rng.IntN(50) > 0 {
		return
	}
	for range 4 {
		<-time.After(t.claim.TTL / 3)
		c.extends(t)
	}
}
