package caslock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// In a register without notices, each look and each renewal of a place is a request. A waiter
// far back has both seldom, so that a long queue costs little more than a short queue.
const (
	// crowd is the number of claims ahead for each further TTL that a place lasts, farthest the
	// number beyond which a place lasts no longer.
	crowd    = 4
	farthest = 28

	// mostTTL is the most of a TTL that counts for a place. A dead waiter behind the first may block
	// a key until its place ends, so the place of a claim with a TTL of a day must not last for days.
	// With less, a hundred waiters would write more often than Google Cloud Storage permits.
	mostTTL = 2 * time.Minute

	// A waiter behind the first looks so many times while the same claims hold.
	patience = 8
)

// lasts returns how long the place behind so many claims lasts after a request: one TTL for the
// first waiter, eight TTLs at most. A TTL counts as mostTTL at most, or as three looks if that is
// longer, so that the first waiter can pause for a look. If the register notifies, look is 0, and
// the place lasts for [driver.Claim.Alive] and as long again for each claim ahead, if that is less.
func lasts(look time.Duration, c driver.Claim, ahead int) time.Duration {
	ttl := min(c.TTL, max(mostTTL, 3*look))
	kept := ttl + ttl/crowd*time.Duration(min(ahead, farthest))
	if look == 0 {
		kept = min(kept, c.Alive()*time.Duration(1+ahead))
	}
	return kept
}

// pause returns the pause between two looks of a waiter behind so many claims, if the same
// claims have held the key for the time still.
//
// Each hand-over takes about half of look, so look*(1+ahead) does not sleep past the turn. While
// the same claims hold, all but the first waiter look less and less: their turn is late by an
// eighth of that time at most. A third of the place's life is the most, so that a waiter looks
// three times before the place ends.
func pause(look time.Duration, c driver.Claim, ahead int, still time.Duration) time.Duration {
	p := look * time.Duration(1+ahead)
	if ahead > 0 {
		p = max(p, still/patience)
	}
	return min(p, lasts(look, c, ahead)/3)
}

// untilLook returns the time left until the next look at the record for the waiters of this process,
// which looked last at the time looked. If all claims ahead have died, they end together with the
// last of them, and a look follows the end at once.
func (d *desk) untilLook(look, looked, now time.Duration) (left time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, shortest := max(looked, d.seen), time.Duration(0)
	for _, w := range d.watches {
		place, still, end := 0, time.Duration(0), time.Duration(0)
		if d.known != nil {
			still = now - d.moved
			if place = d.known.place(w.claim.ID); place < 0 {
				place = len(d.known.Queue)
			}
			for _, ahead := range [][]claim{d.known.Held, d.known.Queue[:place]} {
				for i := range ahead {
					end = max(end, d.sights.see(ahead[i].ID, ahead[i].span, now))
				}
			}
		}
		p := pause(look, w.claim, place, still)
		if end > last {
			p = min(p, max(end-last, look))
		}
		if shortest == 0 || p < shortest {
			shortest = p
		}
	}
	return last + max(shortest, time.Millisecond) - now
}

// sameHolders reports whether the same grants stand on both pages.
func sameHolders(a, b *page) bool {
	return slices.EqualFunc(a.Held, b.Held, func(a, b claim) bool { return a.ID == b.ID })
}
