package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// FuzzSchedule runs a schedule of calls and faults in virtual time. After each
// step, when everything has come to rest, the locks that callers hold are
// compared with a model that knows only the one rule: weights, tokens, and who
// must be refused.
func FuzzSchedule(f *testing.F) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		schedule := make([]byte, 30+r.IntN(300))
		for i := range schedule {
			schedule[i] = byte(r.Uint32())
		}
		f.Add(schedule)
	}
	f.Fuzz(func(t *testing.T, schedule []byte) {
		simulate(t, func(b *bench) {
			w := newWorld(b)
			schedule = schedule[:min(len(schedule), 1000)]
			for len(schedule) >= 2 && !b.Failed() {
				w.step(schedule[0], schedule[1])
				schedule = schedule[2:]
			}
			w.drain()
		})
	})
}

// A world is two processes, three keys, and what the model knows of them.
type world struct {
	*bench
	lockers [2]*Locker
	keys    [3]*modelKey
	told    counts
	log     []string
}

type modelKey struct {
	name    string
	held    []*modelLock
	waiting []*modelWait
	fence   uint64    // largest token of an exclusive lock
	dirty   time.Time // until then the store may keep a lease that its holder has lost
}

type modelLock struct {
	*Lock
	locker int
	kind   kind
}

type modelWait struct {
	locker int
	kind   kind
	cancel context.CancelFunc
	done   chan struct{}
	lock   *Lock
	err    error
}

type kind struct {
	weight, limit int64
	opts          []LockOption
}

// kinds are those of the keys with readers, and of the key with slots: a reader
// among slots is beyond what the model can tell.
var kinds = [2][4]kind{
	{exclusive, brief, shared, shared},
	{exclusive, brief, {2, 3, []LockOption{SlotsOf(2, 3)}}, {1, 3, []LockOption{Slots(3)}}},
}

var (
	exclusive = kind{driver.MaxWeight, driver.MaxWeight, nil}
	brief     = kind{driver.MaxWeight, driver.MaxWeight, []LockOption{NoRenew(), TTL(5 * time.Second)}}
	shared    = kind{1, driver.MaxWeight, []LockOption{Shared()}}
)

func newWorld(b *bench) *world {
	w := &world{bench: b}
	for i := range w.lockers {
		w.lockers[i] = w.open()
	}
	for i := range w.keys {
		w.keys[i] = &modelKey{name: fmt.Sprint("key", i)}
	}
	return w
}

func (w *world) step(op, arg byte) {
	k, from, kd := w.keys[int(arg)%3], int(arg>>2)%2, kinds[int(arg)%3/2][int(arg>>3)%4]
	switch op % 9 {
	case 0, 1, 2:
		w.note("lock", k.name, from, kd.limit)
		w.wait(k, from, kd)
	case 3:
		w.note("try", k.name, from, kd.limit)
		w.try(k, from, kd)
	case 4, 5:
		if len(k.held) > 0 {
			w.note("unlock", k.name)
			w.unlockModel(k, k.held[int(arg>>2)%len(k.held)])
		}
	case 6:
		if len(k.waiting) > 0 {
			w.note("cancel", k.name)
			k.waiting[int(arg>>2)%len(k.waiting)].cancel()
		}
	case 7:
		w.note("sleep", arg)
		time.Sleep(time.Duration(arg) * 50 * time.Millisecond)
	case 8:
		w.fault(k, from, arg)
	}
	w.settle()
}

func (w *world) note(words ...any) { w.log = append(w.log, fmt.Sprintln(words...)) }

func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nafter %v", fmt.Sprintf(format, args...), w.log)
}

func (w *world) wait(k *modelKey, from int, kd kind) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &modelWait{locker: from, kind: kd, cancel: cancel, done: make(chan struct{})}
	k.waiting = append(k.waiting, m)
	lk := w.lockers[from]
	go func() {
		defer close(m.done)
		m.lock, m.err = lk.Lock(ctx, k.name, kd.opts...)
	}()
}

// try knows the answer wherever no lost lease blurs the picture.
func (w *world) try(k *modelKey, from int, kd kind) {
	l, err := w.lockers[from].TryLock(w.Context(), k.name, kd.opts...)
	fits := k.weight()+kd.weight <= kd.limit
	switch {
	case err != nil && !errors.Is(err, ErrHeld):
		w.fail("TryLock: %v", err)
	case err == nil && (!fits || len(k.waiting) > 0):
		w.fail("TryLock of %d of %d was granted beside %d, with %d waiting", kd.weight, kd.limit, k.weight(), len(k.waiting))
	case err != nil && fits && len(k.waiting) == 0 && time.Now().After(k.dirty):
		w.fail("TryLock of %d of %d was refused beside %d: %v", kd.weight, kd.limit, k.weight(), err)
	case err == nil:
		w.admit(k, l, from, kd)
	}
}

func (k *modelKey) weight() (sum int64) {
	for _, l := range k.held {
		sum += l.kind.weight
	}
	return sum
}

func (w *world) admit(k *modelKey, l *Lock, from int, kd kind) {
	if l.Err() != nil {
		w.fail("a lost lock was handed over: %v", l.Err())
	}
	if sum := k.weight() + kd.weight; sum > kd.limit {
		w.fail("%s: weight %d is held, but the limit is %d", k.name, sum, kd.limit)
	}
	if kd.weight == driver.MaxWeight {
		if l.Fence() <= k.fence {
			w.fail("%s: token %d after %d", k.name, l.Fence(), k.fence)
		}
		k.fence = l.Fence()
	} else if l.Fence() <= k.fence {
		w.fail("%s: token %d is not above the last writer's %d", k.name, l.Fence(), k.fence)
	}
	k.held = append(k.held, &modelLock{l, from, kd})
}

func (w *world) unlockModel(k *modelKey, l *modelLock) {
	k.held = slices.DeleteFunc(k.held, func(o *modelLock) bool { return o == l })
	if err := l.Unlock(); err != nil {
		w.fail("Unlock: %v", err)
	}
}

func (w *world) fault(k *modelKey, from int, arg byte) {
	switch (arg >> 3) % 3 {
	case 0:
		if len(k.held) > 0 {
			w.note("break", k.name)
			if err := w.lockers[from].Break(w.Context(), k.name, k.held[0].ID()); err != nil {
				w.fail("Break: %v", err)
			}
		}
	case 1:
		w.note("renewals fail for 20s")
		w.store.set(func(f *faulty) { f.renew = hangs })
		time.Sleep(20 * time.Second)
		w.store.set(func(f *faulty) { f.renew = nil })
		for _, k := range w.keys {
			k.dirty = time.Now().Add(16 * time.Second)
		}
	case 2:
		w.note("close", from)
		if err := w.lockers[from].Close(); err != nil {
			w.fail("Close: %v", err)
		}
		w.lockers[from] = w.open()
	}
}

func (w *world) open() *Locker { return w.bench.open(&Options{Trace: w.told.trace()}) }

// settle waits until nothing moves, and brings the model up to date.
func (w *world) settle() {
	for w.update() {
	}
	held, waiting := 0, 0
	for _, k := range w.keys {
		held += len(k.held)
		waiting += len(k.waiting)
	}
	if h, n := w.told.held.Load(), w.told.waiting.Load(); int(h) != held || int(n) != waiting {
		w.fail("the trace tells of %d that hold and %d that wait; want %d and %d", h, n, held, waiting)
	}
}

// update enters first what has ended, then what has begun. It reports whether
// something may move again: a lock that was lost is unlocked, so that another can
// have it.
func (w *world) update() (moved bool) {
	time.Sleep(time.Nanosecond) // past the timers that fire at this very instant
	synctest.Wait()
	for _, k := range w.keys {
		k.held = slices.DeleteFunc(k.held, func(l *modelLock) bool {
			err := l.Err()
			if errors.Is(err, ErrLost) {
				moved = true
				k.dirty = time.Now().Add(16 * time.Second)
				_ = l.Unlock()
			}
			return err != nil
		})
	}
	synctest.Wait()
	for _, k := range w.keys {
		for _, m := range w.granted(k) {
			if !w.admitUnlessOver(k, m) {
				moved = true
			}
		}
	}
	return moved
}

// granted takes those who wait no longer off the list, and returns the ones that
// have got the lock, in their order.
func (w *world) granted(k *modelKey) (granted []*modelWait) {
	k.waiting = slices.DeleteFunc(k.waiting, func(m *modelWait) bool {
		select {
		case <-m.done:
		default:
			return false
		}
		if m.err == nil {
			granted = append(granted, m)
		} else if !errors.Is(m.err, context.Canceled) && !errors.Is(m.err, ErrClosed) {
			w.fail("Lock: %v", m.err)
		}
		return true
	})
	slices.SortFunc(granted, func(a, b *modelWait) int { return int(a.lock.hold.Since() - b.lock.hold.Since()) })
	slices.SortStableFunc(granted, func(a, b *modelWait) int {
		return int(int64(a.lock.hold.Token()) - int64(b.lock.hold.Token()))
	})
	return granted
}

// admitUnlessOver reports whether it has not skipped a lock that was granted and has
// ended since.
func (w *world) admitUnlessOver(k *modelKey, m *modelWait) bool {
	if m.lock.Err() != nil {
		k.dirty = time.Now().Add(16 * time.Second)
		if m.kind.weight == driver.MaxWeight {
			k.fence = max(k.fence, m.lock.hold.Token())
		}
		_ = m.lock.Unlock()
		return false
	}
	w.admit(k, m.lock, m.locker, m.kind)
	return true
}

// drain unlocks until nobody waits: everybody must get a turn.
func (w *world) drain() {
	for range 10_000 {
		left := 0
		for _, k := range w.keys {
			for len(k.held) > 0 {
				w.unlockModel(k, k.held[0])
				w.settle() // an Unlock may take a while, and another lock end meanwhile
			}
			left += len(k.waiting)
		}
		if left == 0 {
			return
		}
		time.Sleep(time.Second)
		w.settle()
	}
	w.fail("some wait for ever")
}
