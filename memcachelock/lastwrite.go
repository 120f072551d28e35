package memcachelock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
)

// A lastWrite describes the Store's own write to a key's item. While the item has the same
// CAS number in the same run of the server, the claim is alone there. So a release or a
// renewal takes one round trip instead of two. An empty lastWrite says that the claim was
// refused.
type lastWrite struct {
	run   string
	cas   uint64
	entry book.Entry
	phase uint64    // of the book
	until time.Time // the lastWrite is useless afterwards

	place place // of a refused claim
}

// lastWrites are the last writes of a store, by the ids of claims. The zero value is ready.
type lastWrites struct {
	mu    sync.Mutex
	byID  map[string]*lastWrite
	sweep int // the number of entries at which to look for old ones
}

const fewWrites = 1000

func (w *lastWrites) put(id string, known *lastWrite, ttl time.Duration) {
	now := time.Now()
	known.until = now.Add(ttl + 2*grain)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[string]*lastWrite)
	}
	w.byID[id] = known
	// Lost claims are never released, and would leave their entries behind.
	if len(w.byID) <= max(w.sweep, fewWrites) {
		return
	}
	for id, old := range w.byID {
		if old.until.Before(now) {
			delete(w.byID, id)
		}
	}
	w.sweep = 2 * len(w.byID)
}

// take removes and returns the last write of a claim; nil if there is none.
func (w *lastWrites) take(id string) *lastWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.byID[id]
	delete(w.byID, id)
	return known
}
