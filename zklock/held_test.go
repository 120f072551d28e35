package zklock

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// TestManyHeld holds 10,000 locks, or a tenth in the short form. All hang on one session,
// and to renew them is next to nothing for the servers. A slow machine needs up to 20 syncs
// a second until there is proof that the session lives, but not one for each lock.
func TestManyHeld(t *testing.T) {
	t.Parallel()
	const hands = 64
	locks := 10_000
	if testing.Short() {
		locks = 1000
	}
	z := servers.StartZooKeeper(t, "forceSync=no")
	proxy := servers.StartProxy(t, z.Addr())
	held := make([]*holdfast.Lock, locks)
	t.Cleanup(func() { runtime.KeepAlive(held) }) // A lock that is out of sight is lost, also before the Locker is closed.
	var renewed, lost atomic.Int32
	lk := locker(t, holdfast.Options{TTL: 15 * time.Second, Trace: &holdfast.Trace{
		Renewed: func(holdfast.Event) { renewed.Add(1) },
		Lost: func(e holdfast.Event) {
			var why *holdfast.LostError
			if !errors.As(e.Err, &why) || why.Reason != holdfast.LossExpired && why.Reason != holdfast.LossUnreachable {
				t.Errorf("%s was lost: %v", e.Key, e.Err)
			}
			lost.Add(1)
		},
	}}, proxy.Addr())
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
	servers.Until(t, "every node is watched", func() bool { return z.Count("watch_count") >= locks || lost.Load() > 0 })
	began, made := time.Now(), proxy.Accepted()
	before, asked := renewed.Load(), z.Count("packets_received")
	servers.Until(t, "all are renewed twice", func() bool { return renewed.Load() >= before+int32(2*locks) || lost.Load() > 0 })
	if n := lost.Load(); n > 0 {
		unproved.Skipf(t, "%d locks were lost after %d renewals", n, renewed.Load())
	}
	most := locks/10 + 20*int(time.Since(began).Seconds()+1)
	switch asked = z.Count("packets_received") - asked; {
	case asked <= most:
	case proxy.Accepted() > made: // All nodes have to be watched anew.
		unproved.Logf(t, "the connection was lost")
	default:
		t.Errorf("to renew %d locks twice, the server was asked %d times, want at most %d", locks, asked, most)
	}
	servers.Until(t, "all locks have one session", func() bool { return z.Count("global_sessions") == 1 })
}
