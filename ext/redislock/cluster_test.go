package redislock

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestClusterMovesUnderLocks has several clients take turns on keys of one slot
// while that moves to and fro between primaries, and a primary is replaced: no
// two hold a key at once, tokens grow, and everybody gets their turn.
func TestClusterMovesUnderLocks(t *testing.T) {
	t.Parallel()
	cluster := servers.StartCluster(t)
	url := "redis://" + strings.Join(cluster.Addrs(), ",")
	const key = "{a}*\n key"
	slot := cluster.Slot(names{prefix: DefaultPrefix}.held(key))

	var mu sync.Mutex
	holders, last, turns := 0, uint64(0), 0
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		locks, err := holdfast.Open(t.Context(), url, &holdfast.Options{TTL: 6 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
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
				if holders++; holders > 1 {
					t.Errorf("%d hold the key", holders)
				}
				if fence := lock.Fence(); fence <= last {
					t.Errorf("token %d after %d", fence, last)
				} else {
					last = fence
				}
				turns++
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				holders--
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
		for deadline := time.Now().Add(time.Minute); ; {
			mu.Lock()
			now := turns
			mu.Unlock()
			if now >= before+100 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%d turns in a minute after %s", now-before, what)
				return
			}
			<-time.After(time.Millisecond)
		}
	}
	progress("the start")
	for range 3 {
		from := cluster.Owner(slot)
		for _, to := range cluster.Nodes[:3] {
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
