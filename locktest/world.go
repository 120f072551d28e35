package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// A World has processes on one store of locks, in virtual time. The methods may be called
// from every goroutine of the test.
type World struct {
	tb      testing.TB
	seed    int // 0: no faults of its own
	sim     *sim.World
	odds    int // of trouble at a step: one in so many
	store   sim.Store
	began   time.Time
	journal journal
	others  *Process // HoldElsewhere and Lose, without faults
	limit   *time.Timer
	late    chan struct{} // closed when overtime has ended the world

	mu        sync.Mutex
	processes []*Process
	held      []*grant
	dropped   []*grant // collected as garbage while they were held
	count     count
	calmed    bool // no more faults of the seed
	ended     bool
}

// lifetime is how long a world may last unless Limit says otherwise.
const lifetime = 24 * time.Hour

// Run calls f with a world, in a bubble of testing/synctest. Only f makes faults in the
// world. A lock that f leaves behind and nobody unlocks within a virtual minute fails the
// test, and so does an f that takes longer than a virtual day (see [World.Limit]).
//
// The rules of a bubble hold: f uses the t of its own argument, calls neither Run nor
// Parallel of t, and uses no real network, since virtual time stands still while a
// goroutine waits for a network.
func Run(t *testing.T, f func(t *testing.T, w *World)) {
	t.Helper()
	outside(t, "Run")
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t, 0)) })
}

// outside stops a test that is in a bubble already.
func outside(t *testing.T, call string) {
	t.Helper()
	if inBubble() {
		t.Fatalf("locktest.%s makes a bubble of its own: call it outside of synctest.Test, Run and Explore", call)
	}
}

// inBubble reports whether the caller runs in a bubble: elsewhere Wait panics.
func inBubble() (in bool) {
	defer func() { in = recover() == nil }()
	synctest.Wait()
	return true
}

func newWorld(tb testing.TB, seed int) *World {
	w := &World{tb: tb, seed: seed, began: time.Now()}
	w.sim = sim.New(tb, uint64(seed), func(world *sim.World) sim.Store {
		w.store = sim.Memory()(world)
		return w.store
	})
	w.odds = []int{3, 3, 6, 12}[w.sim.Rand("odds").IntN(4)]
	w.others = &Process{w: w, name: "elsewhere", calm: true}
	w.others.locker = w.others.Open(nil)
	w.late = make(chan struct{})
	w.limit = time.AfterFunc(lifetime, w.overtime)
	tb.Cleanup(w.end)
	return w
}

// Seed returns the seed of [Explore], for choices of the test itself, and 0 in [Run].
func (w *World) Seed() int { return w.seed }

// Limit sets how long the world may last in virtual time, a day unless set. A test may wait
// for a lock without an Unlock, or for a process without a Resume. At the limit such a test
// fails: faults end, Lockers are closed, and waits return [holdfast.ErrClosed].
func (w *World) Limit(d time.Duration) {
	if w.limit.Stop() {
		w.limit.Reset(d - time.Since(w.began))
	}
}

// Process returns the process with a name. The first call for a name makes the process.
func (w *World) Process(name string) *Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if p.name == name {
			return p
		}
	}
	w.useLocked()
	p := &Process{w: w, name: name}
	w.processes = append(w.processes, p)
	return p
}

// part makes a Locker in the simulator.
func (w *World) part(name string, opts *holdfast.Options) *sim.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.useLocked()
	return w.sim.Process(name, opts)
}

// Locker returns the Locker of the process "app", for tests with one process.
func (w *World) Locker() *holdfast.Locker { return w.Process("app").Locker() }

// Lose ends every lock on a key, as [holdfast.Locker.Break] does: from now on the key is free.
// When Lose returns, the holders know, and the contexts of the locks have ended. A holder
// whose process is cut off or paused learns of the loss later, and may overlap with the
// next holder until then. In [Explore] the message of the loss may be late or lost, too: then
// the holder learns of the loss at its next renewal. The key includes the prefix of the Locker.
// The test fails if the key has no holder, as when a fault of Explore has ended the lock before.
func (w *World) Lose(key string) {
	w.tb.Helper()
	n, err := w.lose(key)
	switch {
	case err != nil:
		w.tb.Errorf("locktest: lose %q: %v", key, err)
	case n == 0:
		w.tb.Errorf("locktest: lose %q: nobody holds it; held are %s", key, w.heldKeys())
	}
}

// lose returns how many holders there were.
func (w *World) lose(key string) (n int, err error) {
	ctx, admin := context.Background(), w.others.locker
	holders, err := admin.Holders(ctx, key)
	for _, h := range holders {
		if h.Waiting {
			continue
		}
		if broken := admin.Break(ctx, key, h.ID); broken != nil && !errors.Is(broken, holdfast.ErrLost) {
			err = errors.Join(err, broken)
			continue
		}
		w.note(h.Owner, "is to lose %q, token %d", key, h.Fence)
		n++
	}
	settle()
	return n, err
}

// settle returns when the bubble has nothing left to do but to let time pass.
func settle() { time.Sleep(time.Nanosecond) }

// HoldElsewhere takes the lock on a key in another process, named "elsewhere", which renews
// the lock until release is called or the world ends. The key includes the prefix of the
// Locker under test. The options are for [holdfast.Locker.TryLock]. The test stops if the
// key is not free.
func (w *World) HoldElsewhere(key string, opts ...holdfast.LockOption) (release func()) {
	w.tb.Helper()
	lock, err := w.others.locker.TryLock(context.Background(), key, opts...)
	if err != nil {
		w.tb.Fatalf("locktest: hold %q elsewhere: %v", key, err)
	}
	var once sync.Once
	release = func() { once.Do(func() { _ = lock.Unlock() }) }
	w.tb.Cleanup(release)
	return release
}

// useLocked stops a test that uses a world of a test that has ended.
func (w *World) useLocked() {
	if w.ended {
		panic("locktest: the world of " + w.tb.Name() + " has ended: make one in each test")
	}
}

// overtime ends a world that lasts too long: waits for locks return errors.
func (w *World) overtime() {
	defer close(w.late)
	w.tb.Errorf("locktest: the test goes on after %v of virtual time; held are %s%s", time.Since(w.began), w.heldKeys(), w.standing())
	w.tb.Log(w.journal.close()) // now: if the test is stuck for good, there is no end
	w.calm()
	for _, p := range w.all() {
		p.close()
	}
}

// end judges what the test has left behind, and ends the world.
func (w *World) end() {
	w.note("the test", "has returned")
	if !w.limit.Stop() {
		<-w.late
	}
	w.calm()
	leaks := w.leaks()
	events := w.journal.close()
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.sim.End()
	if err := w.store.Close(); err != nil {
		w.tb.Errorf("locktest: close the store: %v", err)
	}
	if !w.tb.Failed() {
		for _, g := range leaks {
			w.tb.Error(g.leak())
		}
	}
	if w.tb.Failed() && events != "" {
		w.tb.Log(events)
	}
}

// calm ends all faults.
func (w *World) calm() {
	w.mu.Lock()
	w.calmed = true
	w.mu.Unlock()
	for _, p := range w.all() {
		p.setCut(byTest|bySeed, false)
		p.setPaused(byTest|bySeed, false)
	}
}

func (w *World) all() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*Process{w.others}, w.processes...)
}

// standing names the processes that are paused, for messages.
func (w *World) standing() (list string) {
	for _, p := range w.all() {
		p.mu.Lock()
		if p.paused != 0 {
			list += "; " + p.name + " is paused"
		}
		p.mu.Unlock()
	}
	return list
}

// heldKeys names the keys that are held, for messages.
func (w *World) heldKeys() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return "no locks"
	}
	var list []string
	for _, g := range w.held {
		list = append(list, fmt.Sprintf("%q by %s at %s", g.key, g.p.name, g.place))
	}
	return strings.Join(list, ", ")
}
