package redislock

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestClusterMovesUnderLocks has several clients take turns on keys of one slot
// while that moves to and fro between primaries, and a primary is replaced: no
// two hold a key at once, tokens grow, and everybody gets their turn.
func TestClusterMovesUnderLocks(t *testing.T) {
	t.Parallel()
	cluster := servers.StartCluster(t).Calm()
	url := "redis://" + strings.Join(cluster.Addrs(), ",")
	const key = "{a}*\n key"
	slot := cluster.Slot(names{prefix: DefaultPrefix}.held(key))

	var mu sync.Mutex
	var holder *holdfast.Lock // the last to come, unless it has left
	last, turns := uint64(0), 0
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
			return holdfast.Open(ctx, url, &holdfast.Options{TTL: 6 * time.Second})
		})
		clients.Go(func() {
			defer locks.Close()
			for ctx.Err() == nil {
				lock, err := servers.Patient(ctx, locks.Lock, key)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("a turn was missed: %v", err)
					}
					return
				}
				mu.Lock()
				if holder != nil && holder.Err() == nil {
					t.Error("two hold the key")
				}
				switch fence := lock.Fence(); {
				case fence == 0: // lost already, on a slow machine
				case fence <= last:
					t.Errorf("token %d after %d", fence, last)
				default:
					last = fence
				}
				holder = lock
				turns++
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				if holder == lock {
					holder = nil
				}
				mu.Unlock()
				_ = lock.Unlock() // The slot may be on its way: the release is repeated.
			}
		})
	}
	progress := func(what string) {
		t.Helper()
		mu.Lock()
		before := turns
		mu.Unlock()
		servers.Until(t, "turns after "+what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return turns >= before+20
		})
	}
	progress("the start")
	for range 3 {
		from := cluster.Owner(slot)
		for _, to := range cluster.Primaries() {
			if to != from {
				cluster.Migrate(slot, to)
				break
			}
		}
		progress("a move of the slot")
	}
	cluster.Failover(cluster.Owner(slot))
	progress("a change of its primary")
	stop()
	clients.Wait()
}
