package caslock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
)

// heirTime is how long a waiter leaves the end of a dead claim to each waiter ahead.
const heirTime = 250 * time.Millisecond

// armLocked lets this process look again at the known page when a claim ahead of a near waiter ends.
// The register does not report such an end, and the next request of a waiter that was far back a
// moment ago may be minutes away.
func (d *desk) armLocked(b *book.Book, now time.Duration) {
	if d.ends == nil {
		return
	}
	var next time.Duration
	for _, w := range d.watches {
		place := index(b.Queue, w.claim.ID)
		if place < 0 || place >= near {
			continue
		}
		for _, ahead := range [][]book.Entry{b.Held, b.Queue[:place]} {
			for i := range ahead {
				if end := ahead[i].Until + time.Duration(place)*heirTime; end > now && (next == 0 || end < next) {
					next = end
				}
			}
		}
	}
	if d.ends.Stop(); next > 0 {
		d.ends.Reset(next - now)
	}
}

// inherits reports whether a waiter near the first has to end a dead claim: the end lets a waiter
// ahead in, which may be dead as well, because nobody has ended the claim.
func (v *view) inherits(id string) bool {
	place := v.page.place(id)
	if place < 1 || place >= near {
		return false
	}
	then := v.at
	then.Now -= time.Duration(place) * heirTime
	b := v.clone().book
	b.Prune(then, func(string) bool { return true })
	return len(b.Pushed) > 0
}
