package zklock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestManyHeld holds 10,000 locks. All hang on one session, and to renew them is next
// to nothing for the servers.
func TestManyHeld(t *testing.T) {
	t.Parallel()
	const locks, hands = 10_000, 64
	z := servers.StartZooKeeper(t, "forceSync=no")
	var renewed atomic.Int32
	lk := locker(t, holdfast.Options{
		TTL:   15 * time.Second,
		Trace: &holdfast.Trace{Renewed: func(holdfast.Event) { renewed.Add(1) }},
	}, z.Addr())
	var held [locks]*holdfast.Lock // one that nobody has is given back
	var all sync.WaitGroup
	for hand := range hands {
		all.Go(func() {
			for i := hand; i < locks; i += hands {
				var err error
				if held[i], err = lockedWithin(bounded(t), lk, fmt.Sprint("held/", i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	eventually(t, "every node is watched", func() bool { return z.Count("watch_count") >= locks })
	before, asked := renewed.Load(), z.Count("packets_received")
	eventually(t, "all are renewed twice", func() bool { return renewed.Load() >= before+2*locks })
	if asked = z.Count("packets_received") - asked; asked > locks/10 {
		t.Errorf("to renew %d locks twice, the server was asked %d times", locks, asked)
	}
	for _, l := range held {
		if l != nil && l.Err() != nil {
			t.Errorf("%s was lost: %v", l.Key(), l.Err())
		}
	}
	if n := z.Count("global_sessions"); n != 1 {
		t.Errorf("%d locks have %d sessions", locks, n)
	}
}
