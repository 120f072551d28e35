package etcdlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestRestoredSnapshot restores a snapshot under a store: once with another id of
// the cluster, once with the same. The lease of the store is in the snapshot, so
// that what the store writes before it notices is carried out. Nothing of the store
// may live on: its TTL is far longer than this test.
func TestRestoredSnapshot(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
	t.Parallel()
	for _, token := range []string{"restored", ""} {
		t.Run(fmt.Sprintf("token %q", token), func(t *testing.T) {
			t.Parallel()
			e := servers.StartEtcd(t)
			opts := &holdfast.Options{TTL: time.Hour}
			lk := locker(t, e.URL(), opts)
			kept := locked(t, lk, "kept")
			snapshot := e.Snapshot()
			later := locked(t, lk, "later")
			e.Restore(snapshot, token)

			servers.Await(t, "refusal", func() error {
				l, err := lk.TryLock(t.Context(), "orphan")
				switch {
				case err == nil:
					t.Fatalf("the restored cluster granted token %d", l.Fence())
				case !errors.Is(err, holdfast.ErrInvalid):
					return err // It is just being reached.
				case !strings.Contains(err.Error(), "restart the process"):
					t.Errorf("%v: does not say what to do", err)
				}
				return nil
			})
			for _, l := range []*holdfast.Lock{kept, later} {
				select {
				case <-l.Done():
					if err := l.Err(); !errors.Is(err, holdfast.ErrLost) || !strings.Contains(err.Error(), "restored") {
						t.Errorf("%s: lost by %v", l.Key(), err)
					}
				case <-time.After(patience):
					t.Fatalf("the holder of %s was not told", l.Key())
				}
			}

			fresh := locker(t, e.URL(), opts)
			for _, key := range []string{"kept", "later", "orphan"} {
				if err := unlock(locked(t, fresh, key)); err != nil {
					t.Error(err)
				}
			}
			if _, err := lk.Lock(t.Context(), "more"); !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("the store goes on: %v", err)
			}
			if _, err := lk.Holders(t.Context(), "kept"); !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("the store still reads: %v", err)
			}
		})
	}
}
