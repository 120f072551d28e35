// Package outage tests locks that change hands while a part of the cluster behind the locks
// fails.
package outage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// keys is how many locks are held, and waited for, when the cluster is harmed.
const keys = 100

// grace is how long all waiters may need for their turn, beside a TTL and the time of an
// election. grace allows for a busy machine.
const grace = 30 * time.Second

// patience limits the steps before the harm.
const patience = 2 * time.Minute

// A Scene is three processes that want the same keys, and a harm of the cluster.
type Scene struct {
	Name string        // prefix of the keys
	TTL  time.Duration // of the locks

	// Order says that a waiter keeps its place for as long as it retries, with or without
	// answers. Not every store promises Order.
	Order bool

	Holders *holdfast.Locker // holds the keys when the cluster is harmed
	Waiters *holdfast.Locker // queues behind Holders
	Late    *holdfast.Locker // comes while the harm lasts
	Harm    func() (undo func())
	Elected func() // returns when the rest of the cluster has a leader
}

// Play lets every process hold every key while the harm lasts: the holders release, the
// waiters come next, and last the processes that came during the harm, which also acquire
// keys without other waiters. No lock is lost or held twice. Tokens grow, and everything is
// over within the TTL and half a minute once there is a leader.
func (s Scene) Play(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	soon := time.AfterFunc(patience, cancel)
	var all sync.WaitGroup
	batons, missed := make([]*baton, keys), make(chan error, 4*keys)
	for i := range batons {
		batons[i] = &baton{t: t, key: fmt.Sprint(s.Name, "/", i), missed: missed, loose: !s.Order}
		all.Go(func() { batons[i].first(ctx, s.Holders) })
	}
	all.Wait()
	if len(missed) > 0 {
		t.Fatalf("%d of %d have no lock before anything fails, one of them: %v", len(missed), keys, <-missed)
	}
	for _, b := range batons {
		all.Go(func() { b.second(ctx, s.Waiters) })
	}
	for _, b := range batons {
		b.awaitSecond(ctx, s.Holders)
	}
	undo := s.Harm()
	began := time.Now()
	if !soon.Stop() {
		t.Errorf("%s: it took more than %v to begin", s.Name, patience)
	}
	for _, b := range batons {
		all.Go(func() { b.third(ctx, s.Late) })
		all.Go(func() { b.alone(ctx, s.Late) })
		all.Go(func() { b.handOn(b.begun) })
	}
	s.Elected()
	election := time.Since(began)
	soon.Reset(s.TTL + grace)
	all.Wait()
	soon.Stop()
	if len(missed) > 0 {
		t.Errorf("%s: %d of %d have had no turn within %v, one of them: %v", s.Name, len(missed), 3*keys, s.TTL+grace, <-missed)
	}
	t.Logf("%s: there was a leader after %v, and all had their turns after %v", s.Name, election, time.Since(began))
	undo()
}
