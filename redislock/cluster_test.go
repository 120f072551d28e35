package redislock

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
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

// TestReplicasAreDown opens a Cluster of which a replica is dead and another hangs, before the
// Cluster has noticed: that costs no key its primary, so everything works.
func TestReplicasAreDown(t *testing.T) {
	t.Parallel()
	cluster := servers.StartCluster(t).Calm()
	url := "redis://" + strings.Join(cluster.Addrs(), ",")
	before := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
	defer before.Close()
	primaries := cluster.Primaries()
	cluster.Replica(primaries[0]).Kill()
	hung := cluster.Replica(primaries[1])
	hung.Pause()
	defer hung.Resume()

	after := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
	defer after.Close()
	for name, locks := range map[string]*holdfast.Locker{"before": before, "after": after} {
		if _, err := servers.Patient(t.Context(), locks.Lock, name); err != nil {
			t.Fatal(err)
		}
		found := 0
		for key, err := range locks.Keys(t.Context(), name) {
			if err != nil || key != name {
				t.Errorf("Keys of a client from %s: %q, %v", name, key, err)
			}
			found++
		}
		if found != 1 {
			t.Errorf("a client from %s finds %d keys, want 1", name, found)
		}
	}
}

// TestPrimaryIsDown opens a Cluster of which a primary hangs, before it is replaced: the keys
// of the other primaries can be locked, and Keys says what is missing.
func TestPrimaryIsDown(t *testing.T) {
	t.Parallel()
	cluster := servers.StartCluster(t).Calm()
	hung := cluster.Primaries()[0]
	hung.Pause()
	defer hung.Resume()
	conn := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
		return driver.Open(ctx, "redis://"+strings.Join(cluster.Addrs(), ","))
	}).(*Store).conn
	defer conn.Close()
	servers.Until(t, "the answers of two primaries in time", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), refresh)
		defer cancel()
		nodes, err := conn.Primaries(ctx)
		if len(nodes) > 2 || err == nil {
			t.Fatalf("%d primaries, %v, want 2 and an error", len(nodes), err)
		}
		return len(nodes) == 2 && strings.Contains(err.Error(), hung.Addr())
	})
}
