package guarding

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// A thousand withdraw 1 of 300 at the same time: 300 get it.
func TestWithdrawRace(t *testing.T) {
	locks := holdfast.New(memlock.New(), nil)
	defer locks.Close()
	pgx, sql, gorm, err := clients(t.Context(), server.URL(), 12, locks)
	if err != nil {
		t.Fatal(err)
	}
	for name, withdraw := range map[string]func(ctx context.Context, id, amount int64) error{
		"pgx/row lock":      pgx.RowLock,
		"pgx/lease":         pgx.Lease,
		"pgx/version":       pgx.Version,
		"sql/row lock":      sql.RowLock,
		"sql/lease":         sql.Lease,
		"sql/lease, column": sql.LeaseColumn,
		"sql/version":       sql.Version,
		"gorm/row lock":     gorm.RowLock,
		"gorm/lease":        gorm.Lease,
		"gorm/version":      gorm.Version,
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
