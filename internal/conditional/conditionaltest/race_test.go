package conditionaltest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
)

// A memory is a register that may lie.
type memory struct {
	Lies
	splits bool  // compares, and swaps later
	fails  error // of a swap of another version, in place of ErrConflict
	loses  bool  // the last record, in every read

	mu      sync.Mutex
	records map[string]caslock.Record
	writes  int
}

func (m *memory) Read(_ context.Context, key string) (caslock.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loses {
		return caslock.Record{}, nil
	}
	return m.records[key], nil
}

func (m *memory) Swap(_ context.Context, key, version string, data []byte, _ time.Duration) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.records[key]
	switch writes := m.Writes(version == "", old.Version != "", old.Version == version); {
	case !writes && m.fails != nil:
		return "", m.fails
	case !writes:
		return "", caslock.ErrConflict
	case m.splits:
		m.mu.Unlock()
		for range 100 {
			runtime.Gosched()
		}
		m.mu.Lock()
	}
	m.writes++
	next := fmt.Sprint(m.writes)
	m.records[key] = caslock.Record{Version: next, Data: data}
	return next, nil
}

// A race finds each lie of a register.
func TestRaceFindsLies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		register *memory
		want     string // "" if the race finds nothing
	}{
		"honest":                     {new(memory), ""},
		"creates a record again":     {&memory{Lies: Lies{Creates: true}}, "8 clients have won"},
		"replaces any version":       {&memory{Lies: Lies{Replaces: true}}, "8 clients have won"},
		"compares, and swaps later":  {&memory{splits: true}, "clients have won"},
		"refuses by another error":   {&memory{fails: fmt.Errorf("busy")}, "busy"},
		"loses what a client writes": {&memory{loses: true}, "reads no record"},
	} {
		c.register.records = make(map[string]caslock.Record)
		clients := make([]Racer, racers)
		for i := range clients {
			clients[i] = c.register
		}
		err := races(t.Context(), rounds, clients)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
