package memcachelock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
)

// A hold is what we know of a key's item from having written it: that it has
// this claim alone, as long as it has this CAS number in this run of its server.
// With it a release and a renewal take one round trip instead of two. One that
// is empty says that the claim was refused.
type hold struct {
	run   string
	cas   uint64
	entry book.Entry
	phase uint64    // the book's
	until time.Time // by which it is of no use any more
}

// holds are the holds of a store, by the ids of claims. The zero value is ready.
type holds struct {
	mu    sync.Mutex
	byID  map[string]*hold
	sweep int // how many there are when it is time to look for old ones
}

const fewHolds = 1000

func (h *holds) put(id string, known *hold, ttl time.Duration) {
	now := time.Now()
	known.until = now.Add(ttl + 2*grain)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID == nil {
		h.byID = make(map[string]*hold)
	}
	h.byID[id] = known
	// Claims that were lost are never released, so that theirs stay.
	if len(h.byID) <= max(h.sweep, fewHolds) {
		return
	}
	for id, old := range h.byID {
		if old.until.Before(now) {
			delete(h.byID, id)
		}
	}
	h.sweep = 2 * len(h.byID)
}

// take returns the hold of a claim and forgets it; nil if there is none.
func (h *holds) take(id string) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.byID[id]
	delete(h.byID, id)
	return known
}
