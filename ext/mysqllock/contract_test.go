package mysqllock

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

var url string

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { url = servers.MySQLURL(tb) }))
}

func TestContract(t *testing.T) {
	var tables sync.Map
	var n atomic.Int64
	drivertest.Run(t, drivertest.Harness{
		Lacks: drivertest.Watch | drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			f, _ := tables.LoadOrStore(t, fmt.Sprintf("t%d", n.Add(1)))
			s, err := driver.Open(t.Context(), url+"?table="+f.(string))
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
