package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestThousandWaitersEachGetTheirTurnInOrder(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		const n = 1000
		first := b.lock(lk, "k")
		var order []int
		var fences []uint64
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				l := b.lock(lk, "k")
				order = append(order, i) // guarded by the lock
				fences = append(fences, l.Fence())
				b.unlock(l)
			})
			synctest.Wait() // it waits in the queue now
		}
		b.store.seen()
		b.unlock(first)
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != n {
			b.Errorf("%d of %d got their turn, in order: %v", len(order), n, slices.IsSorted(order))
		}
		for i := 1; i < len(fences); i++ {
			if fences[i] <= fences[i-1] {
				b.Fatalf("token %d after %d at turn %d", fences[i], fences[i-1], i)
			}
		}
		if c := b.store.seen(); c.acquire > n/100 {
			b.Errorf("%d hand-offs cost %d acquires", n, c.acquire)
		}
	})
}

// Processes get the key in turn although each has its own line.
func TestHandOffsAreCapped(t *testing.T) {
	simulate(t, func(b *bench) {
		one, two := b.open(nil), b.open(nil)
		first := b.lock(one, "k")
		var order []string
		var wg sync.WaitGroup
		work := func(lk *Locker, name string) {
			wg.Go(func() {
				l := b.lock(lk, "k")
				order = append(order, name)
				time.Sleep(5 * time.Millisecond)
				b.unlock(l)
			})
			synctest.Wait()
		}
		for range 20 {
			work(one, "one")
		}
		for range 20 {
			work(two, "two")
		}
		b.unlock(first)
		wg.Wait()
		run := 1
		for i := 1; i < len(order) && slices.Contains(order[i:], "one") && slices.Contains(order[i:], "two"); i++ {
			if order[i] == order[i-1] {
				run++
			} else {
				run = 1
			}
			if time.Duration(run)*5*time.Millisecond > engine.MaxTurn+5*time.Millisecond {
				b.Fatalf("%d turns of 5ms in a row for one process while the other waits: %v", run, order)
			}
		}
	})
}

func TestCancelledWaiterKeepsNoClaim(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other, third := b.open(nil), b.open(nil), b.open(nil)
		l := b.lock(lk, "k")
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(b.Context(), time.Duration(i+1)*time.Millisecond)
				defer cancel()
				if _, err := []*Locker{lk, other}[i%2].Lock(ctx, "k"); !errors.Is(err, ErrHeld) {
					b.Errorf("cancelled wait: %v", err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if h, err := third.Holders(b.Context(), "k"); err != nil || len(h) != 1 {
			b.Errorf("%d claims left, want the holder's only: %+v, %v", len(h), h, err)
		}
		b.unlock(l)
		b.free(third, "k")
		b.free(other, "k")
	})
}

// The grant and the end of the wait meet: whoever wins, nothing is left behind.
func TestCancelRacesHandOff(t *testing.T) {
	for range 200 {
		simulate(t, func(b *bench) {
			lk, other := b.open(nil), b.open(nil)
			l := b.lock(lk, "k")
			var wg sync.WaitGroup
			for i := range 6 {
				from := []*Locker{lk, other}[i%2]
				ctx, cancel := context.WithCancel(b.Context())
				wg.Go(func() {
					if got, err := from.Lock(ctx, "k"); err == nil {
						b.unlock(got)
					} else if !errors.Is(err, context.Canceled) {
						b.Errorf("Lock: %v", err)
					}
				})
				synctest.Wait()
				if i > 0 {
					wg.Go(cancel)
				} else {
					defer cancel()
				}
			}
			wg.Go(func() { b.unlock(l) })
			wg.Wait()
			synctest.Wait()
			b.free(other, "k")
		})
	}
}

func TestWriterIsNotStarvedByReaders(t *testing.T) {
	simulate(t, func(b *bench) {
		one, two := b.open(nil), b.open(nil)
		r1 := b.lock(one, "k", Shared())
		r2 := b.lock(two, "k", Shared())
		wrote := make(chan uint64, 1)
		go func() {
			w := b.lock(one, "k")
			wrote <- w.Fence()
			b.unlock(w)
		}()
		synctest.Wait()
		for _, lk := range []*Locker{one, two} {
			if _, err := lk.TryLock(b.Context(), "k", Shared()); !errors.Is(err, ErrHeld) {
				b.Errorf("a reader passed the waiting writer: %v", err)
			}
		}
		late := make(chan *Lock, 1)
		go func() { late <- b.lock(two, "k", Shared()) }()
		synctest.Wait()
		b.unlock(r1)
		b.unlock(r2)
		w, r := <-wrote, <-late
		if w <= r1.hold.Token() || r.Fence() <= w {
			b.Errorf("tokens: readers %d, writer %d, later reader %d; want them to grow", r1.hold.Token(), w, r.Fence())
		}
		b.unlock(r)
	})
}

// Random work over several keys, kinds and processes; the store's own rule is
// checked from the outside.
func TestRandomWorkKeepsTheRule(t *testing.T) {
	simulate(t, func(b *bench) {
		const keys, workers, rounds = 3, 24, 60
		lockers := []*Locker{b.open(nil), b.open(nil), b.open(nil)}
		var inside [keys]atomic.Int64 // weight of what is held
		var last [keys]atomic.Uint64  // largest token of an exclusive holder
		kinds := []struct {
			weight, limit int64
			opts          []LockOption
		}{
			{driver.MaxWeight, driver.MaxWeight, nil},
			{1, driver.MaxWeight, []LockOption{Shared()}},
			{2, 3, []LockOption{SlotsOf(2, 3)}},
		}
		var wg sync.WaitGroup
		for w := range workers {
			r := rand.New(rand.NewPCG(7, uint64(w)))
			wg.Go(func() {
				for range rounds {
					k := r.IntN(keys)
					kind := kinds[[2]int{0, 1 + k%2}[r.IntN(2)]] // readers and slots do not share a key
					ctx, cancel := context.WithTimeout(b.Context(), time.Duration(r.IntN(300))*time.Millisecond)
					l, err := lockers[r.IntN(len(lockers))].Lock(ctx, fmt.Sprint(k), kind.opts...)
					cancel()
					if err != nil {
						continue
					}
					if now := inside[k].Add(kind.weight); now > kind.limit {
						b.Errorf("weight %d held of %d", now, kind.limit)
					}
					if kind.opts == nil {
						if before := last[k].Swap(l.Fence()); before >= l.Fence() {
							b.Errorf("token %d after %d", l.Fence(), before)
						}
					}
					time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
					inside[k].Add(-kind.weight)
					b.unlock(l)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		for k := range keys {
			b.free(lockers[0], fmt.Sprint(k))
		}
		for i, lk := range lockers {
			if size := lk.engine.Size(); size != (engine.Size{}) {
				b.Errorf("locker %d keeps %+v", i, size)
			}
		}
	})
}

func TestManyKeysLeaveNothing(t *testing.T) {
	simulate(t, func(b *bench) {
		goroutines := servers.Goroutines(b)
		lk := b.open(nil)
		b.unlock(b.lock(lk, "warm"))
		synctest.Wait()
		before := goroutines()
		for i := range 10_000 {
			b.unlock(b.lock(lk, fmt.Sprint("key", i)))
		}
		synctest.Wait()
		if n := goroutines(); n > before {
			b.Errorf("%d goroutines, %d before", n, before)
		}
		if size := lk.engine.Size(); size != (engine.Size{}) {
			b.Errorf("left: %+v", size)
		}
		for key := range lk.Keys(b.Context(), "") {
			b.Fatalf("the store still has %q", key)
		}
	})
}

// A loss that the store tells of in the middle of an Unlock is not handed to the
// next in the queue.
func TestBrokenClaimIsNotHandedOver(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		first := b.lock(lk, "k")
		var calls sync.WaitGroup
		calls.Go(func() {
			l := b.lock(lk, "k") // it came with tokens, because the next waits in the queue
			parent := &meddler{Context: b.Context()}
			l.Context(parent)
			parent.meddle = sync.OnceFunc(func() {
				if err := other.Break(b.Context(), "k", l.ID()); err != nil {
					b.Errorf("Break: %v", err)
				}
			})
			if err := l.Unlock(); !errors.Is(err, ErrLost) {
				b.Errorf("Unlock of a broken lock: %v", err)
			}
		})
		synctest.Wait()
		calls.Go(func() {
			next := b.lock(lk, "k")
			holders, err := other.Holders(b.Context(), "k")
			if err != nil || len(holders) == 0 || holders[0].ID != next.ID() {
				b.Errorf("the lock that was handed over is not among the holders: %v, %v", holders, err)
			}
			b.unlock(next)
		})
		synctest.Wait()
		b.unlock(first)
		calls.Wait()
	})
}

// A meddler does something when a context that was derived from it ends, which
// is when Unlock has ended the lock and not yet passed it on.
type meddler struct {
	context.Context
	meddle func()
}

func (m *meddler) Done() <-chan struct{} {
	if m.meddle != nil {
		m.meddle()
	}
	return m.Context.Done()
}

// A call that asks the store beside the contender, and is not granted the key, would join the queue
// of its turn. Once the Locker is closed, nobody calls the waiters of a queue.
func TestCloseDuringARequestBesideTheContender(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		answer := make(chan struct{})
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, a driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				switch a.Note {
				case "contender":
					<-answer
				case "beside":
					return driver.Grant{}, hang(ctx)
				}
				return next()
			}
		})
		contender, beside := make(chan *Lock), make(chan error, 1)
		go func() { contender <- b.lock(lk, "k", Shared(), Note("contender")) }()
		synctest.Wait()
		go func() { beside <- errOf(lk.Lock(b.Context(), "k", Shared(), Note("beside"))) }()
		synctest.Wait()
		close(answer)
		b.unlock(<-contender)
		l := b.lock(lk, "k")
		if err := lk.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
		if err := <-beside; !errors.Is(err, ErrClosed) || !errors.Is(l.Err(), ErrClosed) {
			b.Errorf("the call: %v, the lock: %v, want ErrClosed", err, l.Err())
		}
	})
}
