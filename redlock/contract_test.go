package redlock_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	_ "github.com/holdfast-go/holdfast/memlock"
	_ "github.com/holdfast-go/holdfast/redlock"
)

// harness is that of a Store on so many nodes, which all stores of one test
// share.
func harness(nodes int) drivertest.Harness {
	return drivertest.Harness{
		Bubble: true,
		Lacks:  drivertest.Slots, // see the package comment
		Open: func(t testing.TB) driver.Store {
			params := url.Values{"quarantine": {"0"}}
			for i := range nodes {
				params.Add("node", fmt.Sprintf("mem://%s-%d", driver.PublicID(t.Name()), i))
			}
			s, err := driver.Open(t.Context(), "redlock://?"+params.Encode())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}

func TestContract(t *testing.T) {
	for _, nodes := range []int{3, 4, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) { drivertest.Run(t, harness(nodes)) })
	}
}

func BenchmarkContract(b *testing.B) { drivertest.Bench(b, harness(3)) }
