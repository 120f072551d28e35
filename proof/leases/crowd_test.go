package leases

import (
	"context"
	"fmt"
	"sync"
	"testing"

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
		at := create(t, e.shared.URL())
		db, _ := e.pool(t, at, 1)
		held := lock(t, locker(t, at, nil), "key")
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		var lining sync.WaitGroup
		var mu sync.Mutex
		var tokens []uint64
		for i := range waiters {
			locks := locker(t, with(at, "conns", "1"), &holdfast.Options{Owner: fmt.Sprint("waiter ", i)})
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
		servers.Until(t, "all to wait", func() bool { return waiting(t, db, at) == waiters })
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
