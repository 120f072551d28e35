package zklock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestEnsembleContract runs the suite against three servers, where one may not have
// heard yet of what was done at another.
func TestEnsembleContract(t *testing.T) {
	t.Parallel()
	e := servers.StartEnsemble(t, "forceSync=no")
	drivertest.Run(t, harness(e.Addrs()...))
}

// TestEnsembleFaults kills, pauses and cuts off the leader and a follower in turn,
// while 100 locks are held and 100 waited for. The holders let go while the fault
// lasts. Nobody loses a lock or has one that another has, all waiters get their
// turn, and tokens grow.
func TestEnsembleFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(e *servers.Ensemble, z *servers.ZooKeeper) (end func()){
		"kill": func(e *servers.Ensemble, z *servers.ZooKeeper) func() {
			z.Kill()
			return z.Restart
		},
		"pause": func(e *servers.Ensemble, z *servers.ZooKeeper) func() {
			z.Pause()
			return z.Resume
		},
		"cut off": func(e *servers.Ensemble, z *servers.ZooKeeper) func() {
			e.CutOff(z, true)
			return func() { e.CutOff(z, false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := servers.StartEnsemble(t, "forceSync=no")
			f := &outage{t: t, ensemble: e, inflict: fault}
			f.holders = locker(t, holdfast.Options{TTL: patience / 2}, e.Addrs()...)
			f.waiters = locker(t, holdfast.Options{TTL: patience / 2, Trace: &holdfast.Trace{Tried: f.tried}}, e.Addrs()...)
			f.run("leader", e.Leader())
			f.run("follower", e.Followers()[0])
		})
	}
}

// A outage is what befalls an ensemble while locks are held and waited for.
type outage struct {
	t                *testing.T
	ensemble         *servers.Ensemble
	inflict          func(*servers.Ensemble, *servers.ZooKeeper) (end func())
	holders, waiters *holdfast.Locker

	refused sync.Map // keys of those that wait
	waiting atomic.Int32
}

func (f *outage) tried(e holdfast.Event) {
	if _, again := f.refused.LoadOrStore(e.Key, true); !again {
		f.waiting.Add(1)
	}
}

func (f *outage) run(who string, z *servers.ZooKeeper) {
	const n = 100
	f.waiting.Store(0)
	held := make([]*holdfast.Lock, n)
	var locks sync.WaitGroup
	for i := range n {
		locks.Go(func() { held[i] = locked(f.t, f.holders, fmt.Sprint(who, "/", i)) })
	}
	locks.Wait()
	if f.t.Failed() {
		f.t.FailNow()
	}
	var free [n]atomic.Bool
	var turns sync.WaitGroup
	for i, before := range held {
		turns.Go(func() {
			l, err := lockedWithin(bounded(f.t), f.waiters, before.Key())
			switch {
			case err != nil:
				f.t.Errorf("the waiter for %s got %v", before.Key(), err)
			case !free[i].Load():
				f.t.Errorf("%s is held twice", before.Key())
			case l.Fence() <= before.Fence():
				f.t.Errorf("%s has token %d after %d", l.Key(), l.Fence(), before.Fence())
			}
			if err == nil {
				_ = l.Unlock() // it may be at a server that is gone
			}
		})
	}
	eventually(f.t, "all wait", func() bool { return f.waiting.Load() == n })
	end := f.inflict(f.ensemble, z)
	began := time.Now()
	for i, l := range held {
		turns.Go(func() {
			if err := l.Err(); err != nil {
				f.t.Errorf("the holder of %s lost it: %v", l.Key(), err)
			}
			free[i].Store(true)
			_ = l.Unlock() // what is not answered is tried again in the background
		})
	}
	turns.Wait()
	f.t.Logf("with the %s: all had their turn %v later", who, time.Since(began).Round(time.Millisecond))
	end()
	f.ensemble.Await()
}
