package pglock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// A counter counts the statements of connections.
type counter struct{ statements atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	return ctx
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestLongQueue checks that a lock takes no more statements behind many waiters than behind few.
// Each waiter is a Locker, which has its own place in the queue as a process has. So that the
// server needs few connections, the Lockers share four stores.
func TestLongQueue(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{10, 100} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			c := new(counter)
			config := must.Get(pgxpool.ParseConfig(server.URL() + "&pool_max_conns=8"))
			config.ConnConfig.Tracer = c
			table := fmt.Sprint("long_queue_", waiters)
			var pool *pgxpool.Pool
			var stores []*Store
			for range 4 {
				pool = servers.Insist(t, func(ctx context.Context) (*pgxpool.Pool, error) { return connect(ctx, config.Copy()) })
				t.Cleanup(pool.Close)
				stores = append(stores, must.Get(New(pool, &Options{Table: table})))
			}
			servers.Insist(t, func(ctx context.Context) (any, error) { return nil, stores[0].Create(ctx) })
			open := func(i int) *holdfast.Locker {
				locks := must.Get(holdfast.New(stores[i%len(stores)], nil))
				t.Cleanup(func() { locks.Close() })
				return locks
			}
			holder := servers.Insist(t, func(ctx context.Context) (*holdfast.Lock, error) { return open(0).Lock(ctx, "key") })
			var queue sync.WaitGroup
			t.Cleanup(queue.Wait)
			for i := range waiters {
				locks := open(i)
				queue.Go(func() {
					lock, err := servers.Patient(t.Context(), locks.Lock, "key")
					if err == nil {
						err = sessiontest.Unlock(lock)
					}
					if err != nil && t.Context().Err() == nil {
						t.Error(err)
					}
				})
			}
			servers.Until(t, "all to wait", func() bool {
				var n int
				err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table+"_claims WHERE waiting").Scan(&n)
				return err == nil && n == waiters
			})
			before, began := c.statements.Load(), time.Now()
			if err := sessiontest.Unlock(holder); err != nil {
				t.Error(err)
			}
			queue.Wait()
			sent, took := c.statements.Load()-before, time.Since(began)
			t.Logf("%.1f statements and %v for each lock", float64(sent)/float64(waiters), took/time.Duration(waiters))
			// An unlock and a request after the wake-up, each of which may be sent again, and heartbeats.
			if most := int64(waiters) * (4 + 2*int64(took/time.Second)); sent > most {
				t.Errorf("%d statements for %d locks in %v, want %d at most", sent, waiters, took, most)
			}
		})
	}
}
