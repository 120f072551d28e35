package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A loss is a store's notice about a claim that ended by itself.
type loss struct {
	key, id string
	err     error
}

// losses listens for the losses of one client. As the core must, the listener never blocks
// the store: a loss that finds the buffer full is dropped.
func (c *client) losses() (heard chan loss, stop func()) {
	notifier, ok := c.store.(driver.Notifier)
	if !ok {
		c.failf("the store is no driver.Notifier, and its harness does not say so")
	}
	heard = make(chan loss, 256)
	stop = notifier.Notify(func(key, id string, err error) {
		select {
		case heard <- loss{key, id, err}:
		default:
		}
	})
	return heard, stop
}

// expect waits for the loss of a claim and fails at a loss of a different claim.
func (e *env) expect(heard chan loss, claim driver.Ask) {
	select {
	case l := <-heard:
		if l.key != claim.Key || l.id != claim.ID {
			e.failf("a loss of id %s on key %q was told, want that of %s", l.id, l.key, show(claim))
		}
		if !errors.Is(l.err, driver.ErrLost) {
			e.failf("the loss of %s was told with %v, which is no ErrLost", show(claim), told(l.err))
		}
	case <-time.After(patience):
		e.failf("the loss of %s was not told within %v", show(claim), patience)
	}
}

// notifyRules are about Notifier: the store tells the owner about a loss before the next
// renewal would. A store may miss the loss of a claim that was granted before the store was
// connected; the Acquire has waited for the connection then, and was not prompt.
var notifyRules = []rule{
	// A Notifier spares the holder the wait for its next renewal. The holder stops its work
	// before much more of the new holder's time has passed.
	{
		name:  "notify/break",
		words: "The owner of a claim that another client broke is notified of the loss at once.",
		needs: Notify | Inspect,
		check: promptly(func(e *env, a, b *client) {
			heard, stop := a.losses()
			defer stop()
			claim := a.takes("broken")
			b.breaks(claim)
			e.expect(heard, claim)
		}),
	},
	// Without the notice the waiter would sleep until its next request, and its caller would
	// wait for a claim that can never be granted.
	{
		name:  "notify/break-in-line",
		words: "A watching waiter whose claim another client broke is notified, because its id is refused from then on.",
		needs: Notify | Inspect | Queue | Watch,
		check: swift(func(e *env, a, b *client) {
			heard, stop := a.losses()
			defer stop()
			b.takes("holder")
			waiter := a.waits("broken")
			defer a.watch(waiter).stop()
			b.breaks(waiter)
			e.expect(heard, waiter)
		}),
	},
	// A false loss ends a healthy lock. A store that broadcasts each removal must compare
	// ids and know its own releases.
	{
		name:  "notify/nothing-else",
		words: "No loss is reported for a released claim or for a claim of another client.",
		needs: Notify | Inspect,
		check: promptly(func(e *env, a, b *client) {
			heard, stop := a.losses()
			defer stop()
			// The loss of a third claim ends the wait: no false loss came before.
			released, others, broken := a.takes("released"), e.exclusive("another client's"), e.exclusive("broken")
			a.ended(released)
			b.granted(others)
			a.breaks(others)
			a.granted(broken)
			b.breaks(broken)
			e.expect(heard, broken)
		}),
	},
	// Several Lockers may share one store, and a closed Locker must hear nothing more.
	{
		name:  "notify/stop",
		words: "After stop, losses are reported only to the remaining listeners.",
		needs: Notify | Inspect,
		check: promptly(func(e *env, a, b *client) {
			stopped, stop := a.losses()
			stop()
			heard, stop := a.losses()
			defer stop()
			claim := a.takes("broken")
			b.breaks(claim)
			e.expect(heard, claim)
			if len(stopped) > 0 {
				e.failf("the loss of %s was told to a listener that had stopped", show(claim))
			}
		}),
	},
}
