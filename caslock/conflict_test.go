package caslock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// A process returns to a key that another process has used meanwhile. The first swap is refused.
// If the refusal has the record, the process reads nothing.
func TestRefusalWithTheRecord(t *testing.T) {
	t.Parallel()
	silent, tells := newMemory(), newMemory()
	for what, c := range map[string]struct {
		memory   *memory
		register caslock.Register
		reads    int
	}{
		"silent": {silent, silent, 1},
		"tells":  {tells, &telling{tells}, 0},
	} {
		one, other := caslock.New(c.register, nil), caslock.New(c.register, nil)
		defer one.Close()
		defer other.Close()
		use := func(s *caslock.Store) uint64 {
			t.Helper()
			claim := driver.Claim{Key: "key", ID: "id", TTL: time.Minute, Weight: driver.MaxWeight, Limit: driver.MaxWeight}
			g, err := s.Acquire(t.Context(), driver.Ask{Claim: claim})
			if err != nil || !g.OK {
				t.Fatalf("%s: %+v, %v", what, g, err)
			}
			if errs := s.Release(t.Context(), []driver.Release{{Claim: claim}}); errs != nil {
				t.Fatalf("%s: %v", what, errs)
			}
			return g.Fence
		}
		before := use(one)
		middle := use(other)
		reads, swaps := c.memory.reads, c.memory.swaps
		after := use(one)
		if reads, swaps = c.memory.reads-reads, c.memory.swaps-swaps; reads != c.reads || swaps != 3 {
			t.Errorf("%s: %d reads and %d swaps, want %d and 3", what, reads, swaps, c.reads)
		}
		if before >= middle || middle >= after {
			t.Errorf("%s: tokens %d, %d, %d", what, before, middle, after)
		}
	}
}
