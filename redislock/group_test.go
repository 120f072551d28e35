package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestGroupInACluster locks keys of all slots together, while another process
// does the same in another order.
func TestGroupInACluster(t *testing.T) {
	t.Parallel()
	url := "redis://" + strings.Join(servers.StartCluster(t).Calm().Addrs(), ",")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	var inside atomic.Int32
	var running sync.WaitGroup
	for range 2 {
		locks := openLocker(t, url)
		slices.Reverse(keys)
		order := slices.Clone(keys)
		lockAll := func(ctx context.Context, _ string, opts ...holdfast.LockOption) (*holdfast.Group, error) {
			return locks.LockAll(ctx, order, opts...)
		}
		running.Go(func() {
			for range 5 {
				group, err := servers.Patient(ctx, lockAll, "all")
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d processes have all keys", n)
				}
				inside.Add(-1)
				if err := unlock(group); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}
