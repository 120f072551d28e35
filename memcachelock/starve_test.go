package memcachelock

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/starve"
)

// TestNobodyStarves has several processes lock one key all the time.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	var parties []starve.Party
	for range 4 {
		parties = append(parties, starve.Party{Locks: newLocker(t, nil, m), Goroutines: 3})
	}
	starve.Check(t, "key", 5, 250, parties...)
}

// TestWriterGetsIn has a writer among readers of other processes, of whom one at least
// nearly always holds the key.
func TestWriterGetsIn(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	readers := func() starve.Party {
		return starve.Party{Locks: newLocker(t, nil, m), Goroutines: 3, Options: []holdfast.LockOption{holdfast.Shared()}, First: true}
	}
	starve.Check(t, "key", 1, 300, readers(), readers(), starve.Party{Locks: newLocker(t, nil, m), Goroutines: 1})
}
