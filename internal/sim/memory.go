package sim

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	_ "github.com/holdfast-go/holdfast/memlock" // a store with a name that clients share
)

// Memory is memlock as the server of all processes.
func Memory() func(w *World) Store {
	return func(w *World) Store {
		m := &memory{url: fmt.Sprint("mem://sim", memories.Add(1))}
		m.own = m.client()
		return m
	}
}

var memories atomic.Int64

type memory struct {
	url string
	own driver.Store // keeps the claims when no process is connected
}

func (m *memory) client() driver.Store { return must.Get(driver.Open(context.Background(), m.url)) }

// Connect implements [Store].
func (m *memory) Connect(p *Process) driver.Store { return Over(p.Link("store"), m.client()) }

// Left implements [Store].
func (m *memory) Left() (keys []string, err error) {
	for key, err := range m.own.(driver.Inspector).Keys(context.Background(), "") {
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// Close implements [Store].
func (m *memory) Close() error { return m.own.Close() }
