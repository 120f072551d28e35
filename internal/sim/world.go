package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/sim/exact"
)

// A World is processes, links and a store in virtual time.
type World struct {
	Seed  uint64
	Trace *Trace
	Judge *Judge
	Count Count

	t         testing.TB
	store     Store
	ctx       context.Context // ends with the world
	cancel    context.CancelFunc
	processes []*Process
	flight    sync.WaitGroup // of messages on their way
	longest   time.Duration  // TTL of all claims
	watching  atomic.Int64   // watchers and notifiers that stores of Over have, and nobody has stopped
	mu        sync.Mutex
}

// A Store is the far end of the links.
type Store interface {
	// Connect returns the store as seen by a process, behind links of that process.
	Connect(p *Process) driver.Store

	// Left names the keys that still have claims. The world is at rest.
	Left() ([]string, error)

	// Close is called when every process is closed.
	Close() error
}

// ended, if set, receives each world that has ended.
var ended func(*World)

// Run makes a world, calls f with the world, ends the world, and reports the violations
// that the judge has found. A deadlock is a failure of the seed.
func Run(t *testing.T, seed uint64, store func(w *World) Store, f func(w *World)) *World {
	t.Helper()
	var w *World
	defer func() {
		if p := recover(); p != nil {
			var events []Event
			if w != nil {
				events = w.Trace.Events()
			}
			t.Fatalf("seed %d: %v\n%s", seed, p, tail(events, "", 40))
		}
	}()
	defer func() {
		if w != nil && ended != nil {
			ended(w)
		}
	}()
	exact.Seed(t, seed)
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, mostEvents, store)
		defer w.Close()
		f(w)
	})
	return w
}

// New makes a world in the bubble of t. [World.End] ends the world. The trace keeps no
// events, so a world may last as long as a test of package locktest takes.
func New(t testing.TB, seed uint64, store func(w *World) Store) *World {
	return newWorld(t, seed, 0, store)
}

func newWorld(t testing.TB, seed uint64, most int, store func(w *World) Store) *World {
	w := &World{Seed: seed, t: t}
	w.Trace = &Trace{seed: seed, most: most, began: time.Now(), claims: make(map[string]claim)}
	w.Judge = newJudge(w)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.store = store(w)
	return w
}

// NewSeed returns a seed that was probably never run. If $HOLDFAST_TEST_SEED is set, the
// seed depends on $HOLDFAST_TEST_SEED only.
func NewSeed() uint64 {
	if !fixed() {
		return uint64(rand.Uint32()) << 16
	}
	text := os.Getenv(seedVariable)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		panic(fmt.Sprintf("%s is %q; it must be a number from 0 to %d", seedVariable, text, math.MaxUint32))
	}
	return n << 16
}

const seedVariable = "HOLDFAST_TEST_SEED"

// fixed reports whether the seeds depend on $HOLDFAST_TEST_SEED.
func fixed() bool { return os.Getenv(seedVariable) != "" }

// Seed returns a NewSeed for the random choices of a test. If the test fails, the log says
// which variable makes the test choose the same again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := NewSeed()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the same random choices again: HOLDFAST_TEST_SEED=%d", seed>>16)
		}
	})
	return seed
}

// Rand returns a generator that depends on the seed and a name only.
func (w *World) Rand(name ...string) *rand.Rand { return w.rand(0, name...) }

// rand also depends on a number. The hash is FNV-1a: rand is called for each message.
func (w *World) rand(n int64, name ...string) *rand.Rand {
	const prime = 1099511628211
	h := uint64(14695981039346656037) ^ uint64(n)
	for _, s := range name {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
		h = (h ^ 0xff) * prime // 0xff is no byte of UTF-8
	}
	return rand.New(rand.NewPCG(w.Seed, h))
}

// Context ends with the world.
func (w *World) Context() context.Context { return w.ctx }

// Now is the virtual time since the world began.
func (w *World) Now() time.Duration { return time.Since(w.Trace.began) }

// Process adds a process. nil means default options.
func (w *World) Process(name string, opts *holdfast.Options) *Process {
	return w.process(name, opts, false)
}

// process adds a process. A process that polls has a store that cannot push.
func (w *World) process(name string, opts *holdfast.Options, polls bool) *Process {
	p := &Process{Name: name, w: w}
	p.machine = &machine{p: p, began: time.Now()}
	p.ctx, p.cancel = context.WithCancel(w.ctx)
	var o holdfast.Options
	if opts != nil {
		o = *opts
	}
	p.ttl = cmp.Or(o.TTL, 15*time.Second)
	if o.Owner == "" {
		o.Owner = name
	}
	if o.Logger == nil {
		o.Logger = silent
	}
	store := w.store.Connect(p)
	if polls {
		store, p.poll = unwatched(store), o.Poll
	}
	watcher, _ := store.(driver.Watcher)
	notifier, ok := store.(driver.Notifier)
	if ok {
		notifier = noting{notifier, p}
	}
	inspector, _ := store.(driver.Inspector)
	p.Locker = must.Get(holdfast.New(assemble(clocked{store, boottime.Of(p.machine), p}, watcher, notifier, inspector), &o))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p
}

// Processes returns all processes, also the ended processes.
func (w *World) Processes() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.processes)
}

// Wait waits for all goroutines of all processes, also the goroutines added meanwhile.
func (w *World) Wait() {
	for n := 0; n < len(w.Processes()); n++ {
		w.Processes()[n].routines.Wait()
	}
}

// Close ends the world: contexts, processes, and messages on their way. Then no claim and no
// watcher may be left in the store.
func (w *World) Close() {
	w.End()
	w.tidy()
	w.Judge.report()
}

// tidy checks, after the end of the world, that nothing is left in the store.
func (w *World) tidy() {
	// A late Acquire may leave a claim, which ends with the TTL. A mark against late
	// messages stays for ten seconds.
	time.Sleep(w.longest + 11*time.Second)
	left, err := w.store.Left()
	if err != nil || len(left) > 0 {
		w.Judge.Fail("", "left", "", fmt.Sprintf("the store still has claims on %q: %v", left, err))
	}
	if n := w.watching.Load(); n > 0 {
		w.Judge.Fail("", "left", "", fmt.Sprintf("the store still has %d watchers", n))
	}
	if err := w.store.Close(); err != nil {
		w.Judge.Fail("", "left", "", fmt.Sprintf("closing the store: %v", err))
	}
}

// End closes all processes and waits for messages on their way, without a verdict.
func (w *World) End() {
	w.cancel()
	for _, p := range w.Processes() {
		p.Thaw()
	}
	w.Wait()
	for _, p := range w.Processes() {
		p.Close()
	}
	w.flight.Wait()
}

// After calls f after d. The world does not end before the call.
func (w *World) After(d time.Duration, f func()) {
	w.flight.Add(1)
	time.AfterFunc(d, func() {
		defer w.flight.Done()
		f()
	})
}

// lasts notes a TTL.
func (w *World) lasts(ttl time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = max(w.longest, ttl)
}
