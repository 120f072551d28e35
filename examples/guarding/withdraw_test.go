package guarding

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// isLate reports whether the store of the locks was too slow for an operation, as on a busy
// machine. If the operation is "lock", nothing was withdrawn. If it is "unlock", and nothing
// else has failed, the money is withdrawn, and the release goes on in the background.
func isLate(err error, op string) bool {
	var late *holdfast.Error
	return errors.As(err, &late) && late.Op == op && errors.Is(late, os.ErrDeadlineExceeded)
}

// Many withdraw 1 at the same time, and there is enough for some: those get it. A guard
// by version repeats its work for each write of another process, so they are fewer.
func TestWithdrawRace(t *testing.T) {
	p, err := start(t.Context(), server.URL(), 12, nil)
	succeed(t, err)
	defer p.end()
	for name, withdraw := range map[string]func(ctx context.Context, id, amount int64) error{
		"pgx/row lock":      p.pgx.RowLock,
		"pgx/fenced":        p.pgx.Fenced,
		"pgx/lease":         p.pgx.Lease,
		"pgx/version":       p.pgx.Version,
		"sql/row lock":      p.sql.RowLock,
		"sql/fenced":        p.sql.Fenced,
		"sql/lease":         p.sql.Lease,
		"sql/lease, column": p.sql.LeaseColumn,
		"sql/version":       p.sql.Version,
		"gorm/row lock":     p.gorm.RowLock,
		"gorm/lease":        p.gorm.Lease,
		"gorm/version":      p.gorm.Version,
	} {
		t.Run(name, func(t *testing.T) {
			balance, buyers := int64(300), int64(1000)
			if testing.Short() || strings.HasSuffix(name, "/version") {
				balance, buyers = 20, 60
			}
			id := account(t, balance)
			var got, refused atomic.Int64
			var wg sync.WaitGroup
			for range buyers {
				wg.Go(func() {
					err := withdraw(t.Context(), id, 1)
					for isLate(err, "lock") {
						err = withdraw(t.Context(), id, 1)
					}
					switch {
					case err == nil:
						got.Add(1)
					case errors.Is(err, ErrFunds):
						refused.Add(1)
					case isLate(err, "unlock"):
						got.Add(1)
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
