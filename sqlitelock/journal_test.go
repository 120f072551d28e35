package sqlitelock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// TestRollbackJournal: in a database of somebody's own, with a rollback journal,
// a statement may fail after it has returned its row, because somebody reads. It
// has granted nothing then.
func TestRollbackJournal(t *testing.T) {
	const writers = 6
	grants := int64(300)
	if testing.Short() {
		grants = 50
	}
	path := filepath.Join(t.TempDir(), "app.db")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var holding, granted atomic.Int64
	for i := range writers {
		db, err := sql.Open("sqlite", dsn(path, "journal_mode(delete)", "synchronous(off)"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s := must.Get(New(db, nil))
		if i == 0 {
			if err := s.Create(ctx); err != nil {
				t.Fatal(err)
			}
		}
		all.Go(func() {
			for granted.Load() < grants && ctx.Err() == nil {
				a := exclusive(rand.Text())
				a.TTL = time.Hour
				g, err := s.Acquire(ctx, a)
				if err == nil && !g.OK {
					continue
				}
				if g.OK {
					granted.Add(1)
					if holding.Add(1) > 1 {
						t.Error("two hold the key")
					}
					<-time.After(time.Duration(i%2) * 200 * time.Microsecond)
					holding.Add(-1)
				}
				if err := settle(ctx, s, a.Claim); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := granted.Load(); n < grants {
		t.Errorf("granted %d times within four minutes, want %d", n, grants)
	}
}

// settle releases a claim until the store has answered.
func settle(ctx context.Context, s *Store, c driver.Claim) error {
	for {
		err := s.Release(ctx, []driver.Release{{Claim: c}})[0]
		if err == nil || errors.Is(err, driver.ErrLost) || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
