package leases

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A crowd of processes wants one key at once. Each process gets a place in the queue, though
// all write the same row, and has its turn.
func TestCrowdOfOneKey(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		waiters := 40
		if testing.Short() {
			waiters = 20
		}
		const ttl = 10 * time.Minute // A busy machine may not renew in time.
		at := create(t, e.shared.URL())
		holder := locker(t, at, &holdfast.Options{TTL: ttl})
		held := lock(t, holder, "key")
		ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
		defer cancel()
		var lining sync.WaitGroup
		var mu sync.Mutex
		var tokens []uint64
		for i := range waiters {
			locks := locker(t, with(at, "conns", "1"), &holdfast.Options{TTL: ttl, Owner: fmt.Sprint("waiter ", i)})
			lining.Go(func() {
				l, err := servers.Patient(ctx, locks.Lock, "key")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if token := l.Fence(); token != 0 || l.Err() == nil { // unlockAtOnce judges a loss
					tokens = append(tokens, token)
				}
				mu.Unlock()
				if err := unlockAtOnce(l); err != nil {
					t.Error(err)
				}
			})
		}
		lined := make(map[string]bool) // by owner; a place may end while the machine is busy
		servers.Until(t, "all to have had a place", func() bool {
			claims, _ := holder.Holders(ctx, "key")
			for _, c := range claims {
				if c.Waiting {
					lined[c.Owner] = true
				}
			}
			return len(lined) == waiters
		})
		succeed(t, unlock(held))
		lining.Wait()
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Errorf("the holders have the tokens %d, in this order", tokens)
				break
			}
		}
	})
}
