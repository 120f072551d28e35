package sqlitelock

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
)

func TestContract(t *testing.T) {
	var folders sync.Map
	drivertest.Run(t, drivertest.Harness{
		Lacks: drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			dir, ok := folders.Load(t)
			if !ok {
				dir, _ = folders.LoadOrStore(t, t.TempDir())
			}
			s, err := driver.Open(t.Context(), "sqlite://"+filepath.Join(dir.(string), "locks.db"))
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}
