package memcachelock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
)

// A hold is what a Store knows of a key's item from having written it: the item has this
// claim alone as long as it has this CAS number in this run of the server. With a hold, a
// release or a renewal takes one round trip instead of two. An empty hold says that the
// claim was refused.
type hold struct {
	run   string
	cas   uint64
	entry book.Entry
	phase uint64    // of the book
	until time.Time // the time after which the hold is useless
}

// holds are the holds of a store, by the ids of claims. The zero value is ready.
type holds struct {
	mu    sync.Mutex
	byID  map[string]*hold
	sweep int // the number of holds at which to look for old ones
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
	// Lost claims are never released, and would leave their holds behind.
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

// take removes and returns the hold of a claim; nil if there is none.
func (h *holds) take(id string) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.byID[id]
	delete(h.byID, id)
	return known
}
