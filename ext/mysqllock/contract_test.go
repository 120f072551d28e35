package mysqllock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
)

func TestContract(t *testing.T) {
	var tables sync.Map
	var n atomic.Int64
	drivertest.Run(t, drivertest.Harness{
		Lacks: drivertest.Watch | drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			f, _ := tables.LoadOrStore(t, fmt.Sprintf("t%d", n.Add(1)))
			s, err := driver.Open(t.Context(), "mysql://app:secret@127.0.0.1:7933/t?table="+f.(string))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.(*Store).Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}
