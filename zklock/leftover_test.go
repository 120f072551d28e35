package zklock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// TestLeavesNothing locks and unlocks 10,000 keys, or 500 in the short form, some of them shared, and some
// waited for. No node, watch, session or goroutine is left.
func TestLeavesNothing(t *testing.T) {
	const hands = 64
	keys := 10_000
	if testing.Short() {
		keys = 500
	}
	z := servers.StartZooKeeper(t, "forceSync=no")
	nodes, watches := z.Count("znode_count"), z.Count("watch_count")
	lk := must.Get(holdfast.New(must.Get(New([]string{z.Addr()}, nil)), nil))
	other := must.Get(holdfast.New(must.Get(New([]string{z.Addr()}, nil)), nil))
	var all sync.WaitGroup
	for hand := range hands {
		all.Go(func() {
			for i := hand; i < keys; i += hands {
				if err := lockOnce(t, lk, other, i); err != nil {
					t.Errorf("key %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	servers.Until(t, "no claims are left", func() bool { return z.Count("ephemerals_count") == 0 })
	servers.Until(t, "no watches are left", func() bool { return z.Count("watch_count") == watches })
	servers.Until(t, "no nodes are left", func() bool { return z.Count("znode_count") == nodes })
	for _, l := range []*holdfast.Locker{lk, other} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	servers.Until(t, "no sessions are left", func() bool { return z.Count("global_sessions") == 0 })
	servers.Until(t, "no goroutines are left", func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !strings.Contains(string(stacks), "/zklock.(*Store)") && !strings.Contains(string(stacks), "/zoo.(*")
	})
}

func lockOnce(t *testing.T, lk, other *holdfast.Locker, i int) error {
	key := fmt.Sprint("leftover/", i)
	var opts []holdfast.LockOption
	if i%5 == 0 {
		opts = append(opts, holdfast.Shared())
	}
	l, err := lockedWithin(bounded(t), lk, key, opts...)
	if err != nil {
		return err
	}
	if i%10 != 1 {
		return unlock(l)
	}
	waiter := make(chan error, 1)
	go func() {
		l, err := lockedWithin(bounded(t), other, key)
		if err == nil {
			err = unlock(l)
		}
		waiter <- err
	}()
	if err := unlock(l); err != nil {
		return err
	}
	return <-waiter
}

// unlock releases a lock. If a slow server does not answer in time, or the connection was
// lost, the release goes on in the background.
func unlock(l *holdfast.Lock) error {
	err := l.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, zoo.ErrUnknown) {
		return nil
	}
	return err
}
