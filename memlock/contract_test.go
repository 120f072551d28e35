package memlock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	_ "github.com/holdfast-go/holdfast/memlock"
)

// The stores of one test share a name, as processes would share a server.
var harness = drivertest.Harness{
	Bubble: true,
	Open: func(t testing.TB) driver.Store {
		s, err := driver.Open(t.Context(), "mem://"+driver.PublicID(t.Name()))
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
}

func TestContract(t *testing.T) { drivertest.Run(t, harness) }

func BenchmarkContract(b *testing.B) { drivertest.Bench(b, harness) }
