package mysqllock

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/starve"
)

// TestSessionNobodyStarves has several processes lock one key all the time.
func TestSessionNobodyStarves(t *testing.T) {
	t.Parallel()
	var parties []starve.Party
	for range 4 {
		parties = append(parties, starve.Party{Locks: locker(t, server, nil), Goroutines: 3})
	}
	starve.Check(t, "starve", 5, 250, parties...)
}
