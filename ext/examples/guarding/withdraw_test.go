package guarding

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// A thousand withdraw 1 of 300 at the same time: 300 get it.
func TestWithdrawRace(t *testing.T) {
	p, err := start(t.Context(), server.URL(), 12, nil)
	must(t, err)
	defer p.end()
	for name, withdraw := range map[string]func(ctx context.Context, id, amount int64) error{
		"pgx/row lock":      p.pgx.RowLock,
		"pgx/lease":         p.pgx.Lease,
		"pgx/version":       p.pgx.Version,
		"sql/row lock":      p.sql.RowLock,
		"sql/lease":         p.sql.Lease,
		"sql/lease, column": p.sql.LeaseColumn,
		"sql/version":       p.sql.Version,
		"gorm/row lock":     p.gorm.RowLock,
		"gorm/lease":        p.gorm.Lease,
		"gorm/version":      p.gorm.Version,
	} {
		t.Run(name, func(t *testing.T) {
			const buyers, balance = 1000, 300
			id := account(t, balance)
			var got, refused atomic.Int64
			var wg sync.WaitGroup
			for range buyers {
				wg.Go(func() {
					switch err := withdraw(t.Context(), id, 1); {
					case err == nil:
						got.Add(1)
					case errors.Is(err, ErrFunds):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			left := balanceOf(id)
			if got.Load() != balance || refused.Load() != buyers-balance || left != "0" {
				t.Errorf("%d got it, %d were refused, %s is left; want %d, %d and 0", got.Load(), refused.Load(), left, balance, buyers-balance)
			}
		})
	}
}
