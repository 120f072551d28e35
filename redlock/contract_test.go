package redlock_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	_ "github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/redlock"
)

// harness is that of a Store on so many nodes, which all stores of one test
// share.
func harness(nodes int) drivertest.Harness {
	lacks := drivertest.Slots | drivertest.Crowd // see the package comment
	if nodes%2 == 0 {
		lacks |= drivertest.Queue // two waiters may have half of the nodes each: one gives way
	}
	return drivertest.Harness{
		Bubble: true,
		Lacks:  lacks,
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
		Linked: func(testing.TB) (driver.Store, drivertest.Link) {
			var faulty way
			var stores []driver.Store
			for range nodes {
				n := newFaulty()
				faulty, stores = append(faulty, n), append(stores, n)
			}
			return must.Get(redlock.New(stores, &redlock.Options{Quarantine: -1})), faulty
		},
	}
}

// A way is the link to nodes that all have the same fault.
type way []*faulty

func (w way) Blackhole(on bool) { w.set(on, hung) }
func (w way) Refuse(on bool)    { w.set(on, down) }
func (w way) Reset()            {}

func (w way) set(on bool, what fault) {
	if !on {
		what = nil
	}
	for _, n := range w {
		n.set(what)
	}
}

func TestContract(t *testing.T) {
	for _, nodes := range []int{3, 4, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			if nodes > 3 && testing.Short() {
				t.Skip("takes 10 s: make prove")
			}
			drivertest.Run(t, harness(nodes))
		})
	}
}

func BenchmarkContract(b *testing.B) { drivertest.Bench(b, harness(3)) }
