package redislock_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A history is what several processes did with one lock, in the order of the
// tokens that they got for it.
type history struct {
	turns  []turn
	claims []event // "grant"
	errors []event
	stalls []event
	kills  []time.Duration

	processes int // at a time
}

// A turn is one lock, from when its owner knew that it held until it was about
// to unlock.
type turn struct {
	owner      *worker
	fence      uint64
	value      int
	held, free time.Duration // free is 0 if it did not come to that
}

func (c *chaos) history() *history {
	h := &history{processes: len(c.working)}
	for _, w := range c.workers {
		if w.killed > 0 {
			h.kills = append(h.kills, w.killed)
		}
		at := make(map[uint64]int) // place in turns, by token
		for _, e := range read(c.t, w.journal) {
			switch e.What {
			case "grant":
				h.claims = append(h.claims, e)
			case "stall":
				h.stalls = append(h.stalls, e)
			case "error":
				h.errors = append(h.errors, e)
			case "hold":
				at[e.Fence] = len(h.turns)
				h.turns = append(h.turns, turn{owner: w, fence: e.Fence, value: e.Value, held: e.At})
			case "free":
				if i, ok := at[e.Fence]; ok {
					h.turns[i].free = e.At
				}
			}
		}
	}
	slices.SortStableFunc(h.turns, func(a, b turn) int { return cmp.Compare(a.fence, b.fence) })
	slices.SortFunc(h.claims, func(a, b event) int { return cmp.Compare(a.Fence, b.Fence) })
	return h
}

// checkTokens fails if a token was given twice.
func (h *history) checkTokens(t *testing.T) {
	t.Helper()
	for i, now := range h.turns[min(1, len(h.turns)):] {
		if last := h.turns[i]; now.fence == last.fence {
			t.Errorf("token %d was given twice, to %s and %s", now.fence, last.owner.name, now.owner.name)
		}
	}
}

// skipIfStopped skips the rest if the machine stopped for so long that locks and places in the
// queue may have ended.
func (h *history) skipIfStopped(t *testing.T) {
	t.Helper()
	if longest := h.stalled(0, math.MaxInt64); longest >= countTTL/3 {
		unproved.Skipf(t, "the machine stopped for %v, and a lock has a TTL of %v", longest, countTTL)
	}
}

// checkErrors fails for what a caller would have had to deal with: connections
// that break and scripts that are forgotten are the store's own business.
func (h *history) checkErrors(t *testing.T) {
	t.Helper()
	for i, e := range h.errors {
		if i < 5 {
			t.Errorf("at %v a worker saw: %s", e.At, e.Text)
		}
	}
	if n := len(h.errors); n > 0 {
		t.Errorf("%d errors in all", n)
	}
}

// checkTurns fails if two turns overlapped, if tokens do not grow with time, or
// if the number is not exact.
func (h *history) checkTurns(t *testing.T, number int) {
	t.Helper()
	for i, now := range h.turns {
		last := turn{}
		if i > 0 {
			last = h.turns[i-1]
		}
		// A killed process may not have come to write, or not to report the write.
		unsure := last.free == 0 && i > 0 && last.owner.killed > 0
		switch {
		case now.held < last.free || now.held < last.held:
			t.Errorf("%s held with token %d at %v, before %s was done at %v with the smaller %d",
				now.owner.name, now.fence, now.held, last.owner.name, last.free, last.fence)
		case last.free == 0 && i > 0 && !unsure:
			t.Errorf("%s never gave back token %d", last.owner.name, last.fence)
		case now.value != last.value+1 && !(unsure && now.value == last.value):
			t.Errorf("%s with token %d went from %d to %d", now.owner.name, now.fence, last.value, now.value)
		default:
			continue
		}
		return // The rest would say little.
	}
	if n := len(h.turns); n == 0 || number != h.turns[n-1].value {
		t.Errorf("counted to %d, which is not what the last of %d turns has written", number, n)
	}
}

// unnoticed is for how long a server may take a killed process for one that
// listens, and a process the connection that was cut for one that stands.
const unnoticed = 100 * time.Millisecond

// checkOrder fails if a claim was overtaken by more than one that came after
// it. A connection that is cut excuses one claim: a waiter that nobody can tell
// keeps its place, but cannot have the lock until it listens again.
func (h *history) checkOrder(t *testing.T, cuts []span) {
	t.Helper()
	stood, late, unexcused := 0, 0, 0
	for i, c := range h.claims {
		if c.Stood == 0 {
			continue
		}
		stood++
		overtaken := 0
		for _, other := range h.claims[max(0, i-100):i] {
			if other.Sent > c.Stood {
				overtaken++
			}
		}
		if overtaken <= 1 {
			continue
		}
		late++
		if !slices.ContainsFunc(cuts, func(cut span) bool {
			return cut.from <= c.At && cut.to+unnoticed+h.stalled(cut.to, c.At) >= c.Sent
		}) {
			unexcused++
			t.Errorf("the claim that got token %d was overtaken by %d that came after it", c.Fence, overtaken)
		}
	}
	t.Logf("%d of %d claims that waited in the queue were overtaken by more than one; %d connections were cut", late, stood, len(cuts))
	if late > len(cuts) {
		t.Errorf("%d claims were overtaken, more than connections were cut", late)
	}
	if stood == 0 {
		t.Error("no claim waited in the queue")
	}
}

// usual is far more than a hand-off takes, and much less than the time
// after which a waiter asks by itself.
const usual = countTTL / 30

// checkGaps fails if the lock was free for longer than bound although others wanted it. The
// claim of a killed process lasts until its TTL ends. Time in which the machine did not run
// a process does not count.
func (h *history) checkGaps(t *testing.T, bound time.Duration) {
	t.Helper()
	var gaps []time.Duration
	for i := 1; i < len(h.turns); i++ {
		last, now := h.turns[i-1], h.turns[i]
		gap := now.held - cmp.Or(last.free, last.held)
		killed := slices.ContainsFunc(h.kills, func(kill time.Duration) bool {
			return kill >= last.held-unnoticed && kill <= now.held && now.held-kill <= countTTL+bound
		})
		if killed {
			continue
		}
		if gap -= h.stalled(last.free, now.held); gap > bound {
			t.Errorf("the lock was free for %v, at %v before token %d", gap, last.free, now.fence)
		}
		if now.owner != last.owner {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		t.Error("the lock never went from one process to another")
		return
	}
	slices.Sort(gaps)
	at := func(share float64) time.Duration {
		return gaps[int(share*float64(len(gaps)-1))].Round(time.Microsecond)
	}
	t.Logf("%d turns, %d hand-offs between processes: p50 %v, p90 %v, p99 %v, longest %v (bound %v)",
		len(h.turns), len(gaps), at(0.5), at(0.9), at(0.99), at(1), bound)
	switch half := at(0.5); {
	case half > usual && h.slow():
		unproved.Logf(t, "that waiters are told of hand-offs, half of which took more than %v", usual)
	case half > usual:
		t.Errorf("half of the hand-offs took longer than %v: nobody is told of them", usual)
	}
}

// stalled is the longest time in a span for which the machine did not run a
// process that had to do.
func (h *history) stalled(from, to time.Duration) (longest time.Duration) {
	for _, s := range h.stalls {
		longest = max(longest, min(s.At, to)-max(s.Sent, from))
	}
	return longest
}

// slow reports whether the machine left the processes waiting for a tenth of the time.
func (h *history) slow() bool {
	var waited, last time.Duration
	first := sinceBoot()
	for _, c := range h.claims {
		first, last = min(first, c.At), max(last, c.At)
	}
	for _, s := range h.stalls {
		waited += s.At - s.Sent
	}
	return waited > time.Duration(h.processes)*(last-first)/10
}

// checkEffort fails for a run that shows nothing: each of the workers must have
// had its turns.
func (h *history) checkEffort(t *testing.T, workers []*worker, seconds int) {
	t.Helper()
	if n := len(h.claims); n < 10*seconds {
		if n > 0 && h.slow() {
			unproved.Skipf(t, "only %d claims were granted in %d seconds", n, seconds)
		}
		t.Errorf("only %d claims were granted in %d seconds", n, seconds)
	}
	if len(h.kills) == 0 {
		t.Error("nobody was killed")
	}
	for _, w := range workers {
		if !slices.ContainsFunc(h.turns, func(turn turn) bool { return turn.owner == w }) {
			t.Errorf("%s never had the lock", w.name)
		}
	}
}
