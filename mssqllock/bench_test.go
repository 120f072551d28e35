package mssqllock

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// BenchmarkPair compares a lease with an application lock by hand, each acquired and released
// without contention.
func BenchmarkPair(b *testing.B) {
	own := aServer(b)
	must.Get(0, must.Get(New(own.db, nil)).Create(b.Context()))
	b.Run("lease", func(b *testing.B) {
		s := must.Get(New(own.db, nil))
		for b.Loop() {
			c := exclusive("key")
			if g, err := s.Acquire(b.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
				b.Fatal(g, err)
			}
			if errs := s.Release(b.Context(), []driver.Release{{Claim: c}}); errs[0] != nil {
				b.Fatal(errs[0])
			}
		}
	})
	b.Run("LockTx", func(b *testing.B) {
		for b.Loop() {
			tx := must.Get(own.db.BeginTx(b.Context(), nil))
			must.Get(0, LockTx(b.Context(), tx, "key"))
			must.Get(0, tx.Commit())
		}
	})
	b.Run("application lock by hand", func(b *testing.B) {
		for b.Loop() {
			byHand(b, own.db, func() {})
		}
	})
}

// byHand runs work in a transaction with an application lock.
func byHand(b *testing.B, db *sql.DB, work func()) {
	tx := must.Get(db.BeginTx(context.Background(), nil))
	var got int
	const text = "DECLARE @got int; EXEC @got = sp_getapplock @Resource = @p1, @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000; SELECT @got"
	if err := tx.QueryRowContext(b.Context(), text, "key").Scan(&got); err != nil || got < 0 {
		b.Fatal(got, err)
	}
	work()
	must.Get(0, tx.Commit())
}

// BenchmarkHandOver is a key for which two processes compete, so that each lock waits for the
// release of the other process.
func BenchmarkHandOver(b *testing.B) {
	own := aServer(b)
	own.prepared(b, "&wake=false")
	for name, query := range map[string]string{"woken": "", "polling": "&wake=false"} {
		b.Run(name, func(b *testing.B) {
			var lockers [2]*holdfast.Locker
			for i := range lockers {
				lockers[i] = must.Get(holdfast.Open(b.Context(), own.url+query, nil))
				defer lockers[i].Close()
			}
			compete(b, func(i int) {
				lock := must.Get(lockers[i].Lock(b.Context(), "key"))
				must.Get(0, lock.Unlock())
			})
		})
	}
	b.Run("application lock by hand", func(b *testing.B) {
		compete(b, func(int) { byHand(b, own.db, func() {}) })
	})
}

// compete runs the rounds of a benchmark in two processes at the same time.
func compete(b *testing.B, round func(i int)) {
	round(0)
	round(1)
	var left atomic.Int64
	left.Store(int64(b.N))
	var both sync.WaitGroup
	b.ResetTimer()
	for i := range 2 {
		both.Go(func() {
			for left.Add(-1) >= 0 {
				round(i)
			}
		})
	}
	both.Wait()
}
