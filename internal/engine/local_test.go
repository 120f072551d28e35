package engine

import (
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// A store around a local store may do I/O: its calls need a limit.
func TestStoreAroundLocalStoreIsNotLocal(t *testing.T) {
	for store, want := range map[driver.Store]bool{
		memlock.New():                           true,
		struct{ *memlock.Store }{memlock.New()}: false,
	} {
		e := New(Config{Store: store})
		if e.cores[0].local != want || (len(e.cores) == manyCores) != want {
			t.Errorf("local of %T is %v, with %d cores, want %v", store, e.cores[0].local, len(e.cores), want)
		}
	}
}
