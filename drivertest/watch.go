package drivertest

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch receives the wake-ups of one waiting claim.
type watch struct {
	client *client
	claim  driver.Ask
	wakes  chan driver.Grant
	stop   func()
}

// watch begins to listen for a refused claim.
func (c *client) watch(claim driver.Ask) *watch {
	w, err := c.listen(claim)
	if err != nil {
		c.failf("Watch of %s returned %v", show(claim), told(err))
	}
	return w
}

// watchOn is watch for use by many goroutines at once. Their calls may break what the store
// watches by, so watchOn tries again.
func (c *client) watchOn(claim driver.Ask) *watch {
	for start := time.Now(); ; {
		w, err := c.listen(claim)
		if err == nil {
			return w
		}
		if time.Since(start) > patience {
			c.failf("Watch of %s returned errors for %v, the last one: %v", show(claim), patience, told(err))
		}
		<-time.After(10 * time.Millisecond)
	}
}

// listen begins a watch, and returns the error of the store. The context of the call ends
// at once, so a watch that depends on it is short.
func (c *client) listen(claim driver.Ask) (*watch, error) {
	ctx, cancel := c.bounded()
	defer cancel()
	watcher, ok := c.store.(driver.Watcher)
	if !ok {
		c.failf("the store is no driver.Watcher, and its harness does not say so")
	}
	w := &watch{client: c, claim: claim, wakes: make(chan driver.Grant, 4)}
	stop, err := watcher.Watch(ctx, claim.Claim, func(g driver.Grant) {
		select {
		case w.wakes <- g:
		default: // The unread wake-ups make the client ask anyway.
		}
	})
	w.stop = stop
	return w, err
}

// line lets a claim wait in the queue: it asks, watches, and asks once more. The holder
// must not release before line has returned.
func (c *client) line(claim driver.Ask) *watch {
	c.refused(claim)
	w := c.watch(claim)
	c.refused(claim)
	return w
}

// granted waits until wake-ups have led to a grant. granted asks only after a wake-up, so
// that a missing wake-up shows.
func (w *watch) granted() driver.Grant {
	w.client.tb.Helper()
	defer w.stop()
	timeout := time.After(patience)
	for {
		select {
		case g := <-w.wakes:
			if g.OK {
				w.client.kept(w.claim)
				return g
			}
			if g = w.client.acquire(w.claim); g.OK {
				return g
			}
		case <-timeout:
			w.client.failf("%s was not woken within %v of the moment when asking would have paid", show(w.claim), patience)
		}
	}
}

// watchRules are about Watcher: a waiter sleeps until the store wakes it. Missing one
// wake-up costs a heartbeat; missing many makes a lock slow without an error.
var watchRules = []rule{
	// The basic wake-up. Without it every hand-over waits for the next poll.
	{
		name:  "watch/release",
		words: "A waiter is woken when the claim in its way is released.",
		needs: Watch,
		check: swift(func(e *env, a, b *client) {
			for _, c := range []*client{a, b} {
				holder := a.takes("holder")
				waiter := waiting(e.exclusive("waiter"))
				w := c.line(waiter)
				a.ended(holder)
				w.granted()
				a.refused(e.exclusive("other"))
				c.ended(waiter)
			}
		}),
	},
	// The context bounds only the start of the watch. A store that subscribes with the
	// context loses the subscription as soon as Watch has returned.
	{
		name:  "watch/outlives-its-call",
		words: "A watch lasts until stop, not until the context of the call ends.",
		needs: Watch,
		check: swift(func(e *env, a, b *client) {
			// line ends the context of Watch as soon as Watch has returned.
			holder, waiter := a.takes("holder"), waiting(e.exclusive("waiter"))
			w := b.line(waiter)
			<-time.After(waiter.Alive() / 10)
			b.refused(waiter)
			a.ended(holder)
			w.granted()
		}),
	},
	// After a likely refusal the core subscribes first, and then asks once, not twice. A
	// store that watches only claims it has queued would miss the wake-up.
	{
		name:  "watch/before-the-request",
		words: "A watch may begin before the first request of the claim.",
		needs: Watch,
		check: swift(func(e *env, a, b *client) {
			holder, waiter := a.takes("holder"), waiting(e.exclusive("waiter"))
			w := b.watch(waiter)
			b.refused(waiter)
			a.ended(holder)
			w.granted()
		}),
	},
	// Each release must wake the waiter that is next, whichever client released. A store
	// that wakes only the waiters of its own process passes the first turns and then stops.
	{
		name:  "watch/everyone-in-turn",
		words: "Every waiter is woken in its turn: no waiter sleeps past the release that lets it in.",
		needs: Watch,
		check: swift(everyoneInTurn),
	},
	// A process waits for hundreds of keys. A connection or a channel per key runs into
	// limits, and a bounded buffer drops wake-ups.
	{
		name:  "watch/many-keys",
		words: "Claims on many keys may wait at the same time, and each claim is woken.",
		needs: Watch,
		check: swift(func(e *env, a, b *client) {
			var holders []driver.Ask
			var line []*watch
			for i := range e.rounds(60) {
				key := fmt.Sprint(e.key, "/", i)
				holder := on(key, e.exclusive("holder"))
				a.granted(holder)
				holders = append(holders, holder)
				line = append(line, b.line(on(key, waiting(e.exclusive(fmt.Sprint("waiter ", i))))))
			}
			var waiters []func()
			for _, w := range line {
				b.refused(w.claim) // The first waiters have not asked for a long time.
				waiters = append(waiters, func() { w.granted() })
			}
			e.together(append(waiters, func() { a.release(holders...) })...)
		}),
	},
	// One release lets many claims in. A store that wakes only the head of the queue makes
	// the readers wait for each other.
	{
		name:  "watch/all-readers",
		words: "When a writer is released, every reader that waits behind it is woken.",
		needs: Watch | Readers,
		check: swift(func(e *env, a, b *client) {
			writer := a.takes("writer")
			var readers []*watch
			for i := range 6 {
				readers = append(readers, []*client{a, b}[i%2].line(waiting(e.reader(fmt.Sprint("reader ", i+1)))))
			}
			a.ended(writer)
			for _, w := range readers {
				w.granted()
			}
		}),
	},
	// The key is not free then, only lighter. A store that wakes when the last claim has
	// gone makes a semaphore of n behave like a batch of n.
	{
		name:  "watch/slot",
		words: "A claim that waits for a slot is woken when one slot is freed.",
		needs: Watch | Slots,
		check: swift(func(e *env, a, b *client) {
			first, second := e.slot("first", 1, 2), e.slot("second", 1, 2)
			a.granted(first)
			b.granted(second)
			w1 := b.line(waiting(e.slot("waits first", 1, 2)))
			w2 := a.line(waiting(e.slot("waits second", 1, 2)))
			a.ended(first)
			b.ended(second)
			w2.granted()
			w1.granted()
		}),
	},
	// No claim was released, and yet the queue moves. Readers behind a writer that gave up
	// would sleep until their heartbeat.
	{
		name:  "watch/cancelled-before",
		words: "When a waiter gives up, the waiters behind it are woken if they can be granted.",
		needs: Watch | Queue | Readers,
		check: swift(func(e *env, a, b *client) {
			a.granted(e.reader("holds"))
			writer := waiting(e.exclusive("writer"))
			a.line(writer).stop()
			w := b.line(waiting(e.reader("behind")))
			a.ended(writer)
			w.granted()
		}),
	},
	// The first wake-up went to a caller that had left. A store that wakes only for releases
	// of holders strands everyone behind.
	{
		name:  "watch/cancelled-at-its-turn",
		words: "When a claim is released at the moment of its turn, the next waiter is woken.",
		needs: Watch,
		check: swift(func(e *env, a, b *client) {
			holder, first := a.takes("holder"), waiting(e.exclusive("first"))
			a.line(first).stop()
			w := b.line(waiting(e.exclusive("second")))
			a.ended(holder)
			a.releases(late(first))
			w.granted()
		}),
	},
	// Operators break a lock because others wait. The wake-up must not depend on the broken
	// holder.
	{
		name:  "watch/break",
		words: "A Break wakes the next waiter.",
		needs: Watch | Inspect,
		check: swift(func(e *env, a, b *client) {
			holder := a.takes("holder")
			w := b.line(waiting(e.exclusive("waiter")))
			a.breaks(holder)
			w.granted()
		}),
	},
	// The core reuses nothing of a stopped watch, but a store that keeps the callback leaks
	// memory with each Lock that waited.
	{
		name:  "watch/stop",
		words: "After stop has returned, no release wakes the claim.",
		needs: Watch,
		check: swift(func(e *env, a, b *client) {
			// A wake-up may run while stop does, and come late. If a wake-up comes every
			// time, stop did not stop the watch.
			for range 3 {
				if !e.wokenAfterStop(a, b) {
					return
				}
			}
			e.failf("the stopped watch was woken by a later release, three times out of three")
		}),
	},
	// Programs exit while calls wait. A Close that waits for watches, or a stop that waits
	// for a closed client, never returns.
	{
		name:  "watch/close",
		words: "A client with an open watch can be closed.",
		needs: Watch,
		check: func(e *env, a, b *client) {
			holder, waiter := a.takes("holder"), waiting(e.exclusive("waiter"))
			w := b.line(waiter)
			b.close()
			w.stop()
			a.ended(holder)
		},
	},
}

// everyoneInTurn has twelve waiters at three clients pass the key on. Each waiter asks
// only when woken.
func everyoneInTurn(e *env, a, b *client) {
	clients := []*client{a, b, e.client()}
	holder := a.takes("holder")
	var line []*watch
	for i := range 12 {
		line = append(line, clients[i%3].line(waiting(e.exclusive(fmt.Sprint("waiter ", i+1)))))
	}
	// Without a queue, the turn belongs to the waiter that asks first.
	turn := make(chan int, len(line))
	var waiters []func()
	for i, w := range line {
		waiters = append(waiters, func() {
			w.granted()
			turn <- i
			w.client.ended(w.claim)
		})
	}
	a.ended(holder)
	e.together(waiters...)
	for want := range line {
		if got := <-turn; e.has(Queue) && got != want {
			e.failf("%s had its turn before %s", show(line[got].claim), show(line[want].claim))
		}
	}
}

// wokenAfterStop releases the claim in the way of a stopped watch and of a live one. Once
// the live watch is woken, the stopped watch had its chance.
func (e *env) wokenAfterStop(a, b *client) bool {
	key := e.anotherKey()
	holder, waiter := on(key, e.exclusive("holder")), on(key, waiting(e.exclusive("waiter")))
	a.granted(holder)
	stopped := b.line(waiter)
	stopped.stop()
	w := b.watch(waiter)
	b.refused(waiter)
	for len(stopped.wakes) > 0 {
		<-stopped.wakes
	}
	a.ended(holder)
	w.granted()
	return len(stopped.wakes) > 0
}
