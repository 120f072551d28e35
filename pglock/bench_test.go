package pglock

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// BenchmarkHolder renews by turns a lock for which 32 wait, in four clients, and one
// for which nobody does, and reports how many times as long the former takes.
func BenchmarkHolder(b *testing.B) {
	url := servers.StartPostgres(b).URL()
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	store := must.Get(New(pool, nil))
	b.Cleanup(func() { store.Close() })
	if err := store.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	var renewals []driver.Renewal
	for _, key := range []string{"wanted", "unwanted"} {
		c := driver.Claim{Key: key, ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
		if g, err := store.Acquire(b.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
			b.Fatalf("%s: %+v, %v", key, g, err)
		}
		renewals = append(renewals, driver.Renewal{Claim: c})
	}
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	b.Cleanup(func() { cancel(); waiting.Wait() })
	for range 4 {
		crowd(ctx, b, url, "wanted", &waiting)
	}
	var spent [2]time.Duration
	for b.Loop() {
		for i := range renewals {
			start := time.Now()
			if errs := store.Renew(b.Context(), renewals[i:i+1]); errs != nil && errs[0] != nil {
				b.Fatal(errs[0])
			}
			spent[i] += time.Since(start)
		}
	}
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "wanted/unwanted")
}

// crowd lets eight goroutines of a client wait, and returns once one was refused.
func crowd(ctx context.Context, b *testing.B, url, key string, waiting *sync.WaitGroup) {
	refused := make(chan struct{}, 1)
	lk, err := holdfast.Open(ctx, url, &holdfast.Options{Trace: &holdfast.Trace{Tried: func(holdfast.Event) {
		select {
		case refused <- struct{}{}:
		default:
		}
	}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { lk.Close() })
	for range 8 {
		waiting.Go(func() { lk.Lock(ctx, key) })
	}
	<-refused
}
