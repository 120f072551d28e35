package pglock

import (
	"context"
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
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A counter counts the statements of connections.
type counter struct{ statements atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	return ctx
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestLongQueue checks that a lock behind many waiters takes few statements: a release does not
// make each waiter ask. Each waiter is a Locker, which has its own place in the queue as a process
// has. So that the server needs few connections, the Lockers share four stores. The leases are long,
// so that a slow machine loses no claim. It may lose connections that push, and then waiters poll:
// hence the limit of time.
func TestLongQueue(t *testing.T) {
	t.Parallel()
	const waiters = 40
	c := new(counter)
	config := must.Get(pgxpool.ParseConfig(server.URL() + "&pool_max_conns=8"))
	config.ConnConfig.Tracer = c
	var pool *pgxpool.Pool
	var stores []*Store
	for range 4 {
		pool = servers.Insist(t, func(ctx context.Context) (*pgxpool.Pool, error) { return connect(ctx, config.Copy()) })
		t.Cleanup(pool.Close)
		stores = append(stores, must.Get(New(pool, &Options{Table: "long_queue"})))
	}
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, stores[0].Create(ctx) })
	var lockers []*holdfast.Locker
	for i := range waiters + 1 {
		lockers = append(lockers, sessiontest.Locker(t, stores[i%len(stores)], &holdfast.Options{TTL: time.Hour}))
	}
	var sent int64
	unproved.InTime(t, 3*time.Second, func() {
		holder, err := servers.Patient(t.Context(), lockers[waiters].Lock, "key")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var queue sync.WaitGroup
		defer queue.Wait()
		defer cancel()
		for _, locks := range lockers[:waiters] {
			queue.Go(func() {
				lock, err := servers.Patient(ctx, locks.Lock, "key")
				if err == nil {
					err = sessiontest.Unlock(lock)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
		servers.Until(t, "all to wait", func() bool {
			var n int
			err := pool.QueryRow(t.Context(), "SELECT count(*) FROM long_queue_claims WHERE waiting").Scan(&n)
			return err == nil && n == waiters
		})
		before := c.statements.Load()
		if err := sessiontest.Unlock(holder); err != nil {
			t.Error(err)
		}
		queue.Wait()
		sent = c.statements.Load() - before
	})
	t.Logf("%.1f statements for each lock", float64(sent)/waiters)
	// An unlock and a request after the wake-up, each of which may be sent again. If each waiter
	// asked after each release, there would be half as many statements for a lock as waiters.
	if most := int64(waiters * waiters / 4); sent > most {
		t.Errorf("%d statements for %d locks, want %d at most", sent, waiters, most)
	}
}
