package sqlitelock

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
)

func TestContract(t *testing.T) { drivertest.Run(t, harness(false)) }

// Where the system does not tell of writes, waiters are woken all the same.
func TestWatchWithoutEvents(t *testing.T) {
	h := harness(true)
	for _, failure := range drivertest.Check(t, h, "watch/release", "watch/everyone-in-turn", "watch/all-readers", "watch/stop") {
		t.Error(failure)
	}
}

func harness(deaf bool) drivertest.Harness {
	var folders sync.Map
	return drivertest.Harness{
		Lacks: drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			dir, ok := folders.Load(t)
			if !ok {
				dir, _ = folders.LoadOrStore(t, t.TempDir())
			}
			path := filepath.Join(dir.(string), "locks.db")
			s, err := driver.Open(t.Context(), "sqlite://"+path)
			if err != nil {
				t.Fatal(err)
			}
			if !deaf {
				return s
			}
			l := newListener(s.(*Store).file)
			l.deaf = true
			ours := newStore(l.file, l, nil)
			ours.close = s.Close
			return ours
		},
	}
}
