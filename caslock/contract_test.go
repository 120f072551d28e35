package caslock_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
)

// registers are one register for each test, as the clients of one server share it.
type registers[R caslock.Register] struct {
	make func() R
	all  sync.Map // by the name of the test
}

func (r *registers[R]) of(t testing.TB) R {
	if got, ok := r.all.Load(t.Name()); ok {
		return got.(R)
	}
	got, loaded := r.all.LoadOrStore(t.Name(), r.make())
	if !loaded {
		t.Cleanup(func() { r.all.Delete(t.Name()) })
	}
	return got.(R)
}

func (r *registers[R]) harness(memory func(R) *memory) drivertest.Harness {
	return drivertest.Harness{
		Bubble: true,
		Heavy:  true,
		Lacks:  drivertest.Notify,
		Open:   func(t testing.TB) driver.Store { return caslock.New(r.of(t), nil) },
		Newer: func(t testing.TB, key string) (record func() string) {
			m := memory(r.of(t))
			m.mu.Lock()
			defer m.mu.Unlock()
			var page map[string]any
			if err := json.Unmarshal(m.records[key], &page); err != nil {
				t.Fatal(err)
			}
			page["format"], page["held"] = 2, "of another type"
			data, err := json.Marshal(page)
			if err != nil {
				t.Fatal(err)
			}
			m.records[key] = data
			return func() string {
				m.mu.Lock()
				defer m.mu.Unlock()
				return string(m.records[key])
			}
		},
	}
}

var (
	looked = registers[*telling]{make: func() *telling { return &telling{newMemory()} }}
	pushed = registers[*pushing]{make: newPushing}
)

func TestContract(t *testing.T) {
	drivertest.Run(t, looked.harness(func(m *telling) *memory { return m.memory }))
}

func TestContractWatched(t *testing.T) {
	drivertest.Run(t, pushed.harness(func(p *pushing) *memory { return p.memory }))
}

func BenchmarkContract(b *testing.B) {
	drivertest.Bench(b, pushed.harness(func(p *pushing) *memory { return p.memory }))
}
