package pglock

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// A row that somebody's transaction has locked is no end of a caller's context.
func TestBlockedRow(t *testing.T) {
	t.Parallel()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
		return driver.Open(ctx, server.URL()+"&table=blocked_row")
	})
	if err := s.(*Store).Create(sessiontest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	locks := must.Get(holdfast.New(s, nil))
	t.Cleanup(func() { locks.Close() })
	held := sessiontest.Locked(t, locks, "key")
	if err := unlocking.Release(sessiontest.Locked(t, locks, "free").Unlock); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(sessiontest.Bounded(t), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{"BEGIN", "SELECT FROM blocked_row FOR UPDATE"} {
		if _, err := conn.Exec(sessiontest.Bounded(t), sql); err != nil {
			t.Fatal(err)
		}
	}
	check := func(call string, err, ended error) {
		t.Helper()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v, want that the store has not answered", call, err)
		}
		for _, of := range []error{context.Canceled, context.DeadlineExceeded} {
			if errors.Is(err, of) != (of == ended) {
				t.Errorf("%s: %v matches %v: %v", call, err, of, of != ended)
			}
		}
	}
	check("Unlock", held.Unlock(), nil)
	_, err = locks.TryLock(t.Context(), "free")
	check("TryLock", err, nil)
	_, err = locks.Lock(t.Context(), "free")
	check("Lock", err, nil)
	servers.Until(t, "a call to the store before the deadline", func() bool { // A machine may pause until then.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = locks.Lock(ctx, "free")
		return errors.Is(err, os.ErrDeadlineExceeded)
	})
	check("Lock past its deadline", err, context.DeadlineExceeded)
	if _, err := conn.Exec(sessiontest.Bounded(t), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}
