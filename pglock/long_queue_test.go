package pglock

import (
	"context"
	"crypto/rand"
	"errors"
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
// make each waiter send a request. Each waiter is a Locker, which has its own place in the queue as
// a process has. So that the server needs few connections, the Lockers share four stores. A slow
// machine may lose a connection that pushes, and then waiters poll. A pushed grant lasts three
// seconds. So only a try that takes less is judged.
func TestLongQueue(t *testing.T) {
	t.Parallel()
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
	const waiters = 40
	var lockers []*holdfast.Locker
	for i := range waiters + 1 {
		lockers = append(lockers, sessiontest.Locker(t, stores[i%len(stores)], &holdfast.Options{TTL: time.Hour}))
	}
	var sent int64
	var err error
	unproved.InTime(t, 3*time.Second, func() { sent, err = passRound(t, lockers, pool, c) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f statements for each lock", float64(sent)/waiters)
	// An unlock and a request after the wake-up, each of which may be sent again. If a release made
	// all waiters of a store send a request, a lock would take seven statements.
	if most := int64(6 * waiters); sent > most {
		t.Errorf("%d statements for %d locks, want %d at most", sent, waiters, most)
	}
}

// passRound lets all Lockers but the first wait for a key that the first holds. passRound returns
// how many statements they send from the unlock of the first to that of the last.
func passRound(t *testing.T, lockers []*holdfast.Locker, pool *pgxpool.Pool, c *counter) (sent int64, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	key := rand.Text()
	holder, err := lockers[0].Lock(ctx, key)
	if err != nil {
		return 0, err
	}
	ended := make(chan error, len(lockers)-1)
	for _, locks := range lockers[1:] {
		go func() {
			lock, err := locks.Lock(ctx, key)
			if err == nil {
				err = lock.Unlock()
			}
			ended <- err
		}()
	}
	servers.Until(t, "all waiters", func() bool {
		var waiting int
		err := pool.QueryRow(ctx, "SELECT count(*) FROM long_queue_claims WHERE waiting AND key = $1", key).Scan(&waiting)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		return waiting >= len(lockers)-1 || ctx.Err() != nil
	})
	before := c.statements.Load()
	all := []error{holder.Unlock()}
	for range lockers[1:] {
		all = append(all, <-ended)
	}
	return c.statements.Load() - before, errors.Join(all...)
}
