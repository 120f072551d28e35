package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// A vain client counts the writes that found another version of the row.
type vain struct {
	sqlstore.Client
	writes, lost atomic.Int64
}

func (v *vain) Exec(ctx context.Context, st sqlstore.Statement) (sqlstore.Result, error) {
	r, err := v.Client.Exec(ctx, st)
	if err == nil && strings.Contains(st.Text, "AND version = ?") {
		v.writes.Add(1)
		if r.Rows == 0 {
			v.lost.Add(1)
		}
	}
	return r, err
}

// TestTurns: however many of one process want a key, none of their decisions is
// in vain.
func TestTurns(t *testing.T) {
	const askers, times = 16, 10
	s := opened(t, "sqlite://"+filepath.Join(t.TempDir(), "locks.db"))
	client := &vain{Client: sqlstore.SQLite.Client(s.file.db)}
	rows := must.Get(sqlstore.New(client, sqlstore.SQLite, nil))
	held := exclusive("holder")
	held.TTL = time.Hour
	granted(t, rows, held)
	var all sync.WaitGroup
	for i := range askers {
		all.Go(func() {
			a := exclusive(fmt.Sprint("asker", i))
			a.Wait, a.TTL = true, time.Hour
			for range times {
				if g, err := rows.Acquire(t.Context(), a); g.OK || err != nil {
					t.Errorf("%+v, %v", g, err)
				}
				// A slow machine may have cost the asker its place.
				if err := rows.Release(t.Context(), []driver.Release{{Claim: a.Claim}})[0]; err != nil && !errors.Is(err, driver.ErrLost) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if writes, lost := client.writes.Load(), client.lost.Load(); writes == 0 || lost > 0 {
		t.Errorf("%d of %d writes were in vain", lost, writes)
	}
}
