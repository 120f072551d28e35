package engine

import (
	"fmt"
	"testing"
	"time"
)

// TestContendedKeys remembers one key too many: only the oldest is dropped.
func TestContendedKeys(t *testing.T) {
	table := newTable()
	for i := range maxContended + 1 {
		table.remember(fmt.Sprint("key", i), contention{left: time.Duration(i)})
	}
	for i := range maxContended + 1 {
		if _, ok := table.recall(fmt.Sprint("key", i), maxContended); ok != (i > 0) {
			t.Errorf("key %d is remembered: %v", i, ok)
		}
	}
}
