package holdfast

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func TestNextWaiterKeepsThePlaceInTheQueue(t *testing.T) {
	simulate(t, func(b *bench) {
		holder, early, late := b.open(nil), b.open(nil), b.open(nil)
		l := b.lock(holder, "k")
		ctx, cancel := context.WithCancel(b.Context())
		gone := make(chan error)
		go func() { _, err := early.Lock(ctx, "k"); gone <- err }()
		synctest.Wait()
		var order []string
		var wg sync.WaitGroup
		enter := func(lk *Locker, name string) {
			wg.Go(func() {
				got := b.lock(lk, "k")
				order = append(order, name)
				b.unlock(got)
			})
			synctest.Wait()
		}
		enter(early, "next")
		enter(late, "late")
		cancel()
		<-gone
		synctest.Wait()
		b.unlock(l)
		wg.Wait()
		if !slices.Equal(order, []string{"next", "late"}) {
			b.Errorf("order %v: the waiter behind a cancelled waiter lost the place", order)
		}
	})
}

// If waits are shorter than the store takes to answer, the waiters in the queue go on with the
// same claim, so there is nothing to clean up.
func TestUnansweredClaimPassesOn(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		asked := make(map[string]bool)
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, c driver.Ask, _ func() (driver.Grant, error)) (driver.Grant, error) {
				asked[c.ID] = true
				return driver.Grant{}, hang(ctx)
			}
		})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := lk.Lock(b.Context(), "k", Wait(3*time.Millisecond)); err == nil {
					b.Error("got a lock of a store that does not answer")
				}
			})
			time.Sleep(time.Millisecond)
		}
		wg.Go(func() { b.unlock(b.lock(lk, "k")) })
		time.Sleep(time.Second)
		b.store.set(func(f *faulty) { f.acquire = nil })
		wg.Wait()
		if n := len(asked); n != 1 {
			b.Errorf("%d claims for a queue of 51 calls", n)
		}
		if c := b.store.seen(); c.release != 1 {
			b.Errorf("%d releases of one lock", c.release)
		}
		b.free(other, "k")
	})
}

// A call to which a lost claim passes on requests a new claim.
func TestLostClaimIsReplaced(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		var asked []string
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, c driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				asked = append(asked, c.ID)
				if len(asked) == 1 {
					return driver.Grant{}, hang(ctx)
				}
				if n := lk.engine.Size().Early; n > 0 {
					b.Errorf("%d losses are remembered of claims that nobody asks for", n)
				}
				return next()
			}
		})
		gone := make(chan error)
		go func() { _, err := lk.Lock(b.Context(), "k", Wait(10*time.Millisecond)); gone <- err }()
		synctest.Wait()
		next := make(chan *Lock)
		go func() { next <- b.lock(lk, "k") }()
		synctest.Wait()
		b.store.tell("k", asked[0], driver.ErrLost)
		<-gone
		b.unlock(<-next)
		if len(asked) != 2 || asked[1] == asked[0] {
			b.Errorf("asked for %q, of which the first was over", asked)
		}
		b.free(other, "k")
	})
}

// A process that receives no answers does not keep a key from other processes by a claim that
// passes from waiter to waiter.
func TestUnheardGrantIsNotPassedOnForEver(t *testing.T) {
	simulate(t, func(b *bench) {
		deaf, other := b.open(&Options{Owner: "deaf"}), b.open(nil)
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, c driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				g, err := next()
				if c.Owner == "deaf" {
					return driver.Grant{}, hang(ctx)
				}
				return g, err
			}
		})
		var wg sync.WaitGroup
		inVain := func() {
			wg.Go(func() {
				if _, err := deaf.Lock(b.Context(), "k", Wait(30*time.Millisecond)); err == nil {
					b.Error("got a lock without an answer")
				}
			})
			synctest.Wait()
		}
		inVain()
		got := make(chan *Lock, 1)
		go func() { got <- b.lock(other, "k") }()
		for range 1000 { // ten seconds
			inVain()
			time.Sleep(10 * time.Millisecond)
		}
		select {
		case l := <-got:
			b.unlock(l)
		default:
			b.Error("the other process has not got the key for ten seconds")
		}
		wg.Wait()
	})
}

// An Acquire that arrives late, after a second Acquire of the claim and the release, is refused.
func TestAcquireThatArrivesAfterTheRelease(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		var arrive func() (driver.Grant, error)
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				if arrive == nil {
					arrive = next
					return driver.Grant{}, hang(ctx)
				}
				return next()
			}
		})
		b.unlock(b.lock(lk, "k"))
		if g, err := arrive(); g.OK {
			b.Errorf("a claim that was released is granted: %+v, %v", g, err)
		}
		b.free(other, "k")
	})
}
