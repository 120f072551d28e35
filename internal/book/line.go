package book

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// expire begins a call: it drops expired entries and tombs.
func (b *Book) expire(now time.Duration) {
	b.Pushed = b.Pushed[:0]
	b.Held = standing(b.Held, now)
	b.Queue = standing(b.Queue, now)
	b.Tombs = slices.DeleteFunc(b.Tombs, func(t Tomb) bool { return t.Until <= now })
}

// standing drops the expired entries. Mostly there are none, so standing looks before
// moving an entry.
func standing(entries []Entry, now time.Duration) []Entry {
	for i := range entries {
		if entries[i].Until <= now {
			return slices.DeleteFunc(entries, func(e Entry) bool { return e.Until <= now })
		}
	}
	return entries
}

// handOff grants queued claims in FIFO order, while the next claim fits. It fails when
// there are no tokens left.
func (b *Book) handOff(m Moment) error {
	n := 0
	var err error
	for n < len(b.Queue) && b.fits(&b.Queue[n]) {
		e := b.Queue[n]
		window := driver.Claim{TTL: e.TTL}.Alive()
		e.Until = m.in(window)
		e.Asked = min(e.Asked, m.Now) // the clock may have been set back since
		var g driver.Grant
		if g, err = b.grant(m, e); err != nil {
			break
		}
		// The owner counts from before its Acquire, which was m.Now - Asked ago.
		g.TTL = m.Now - e.Asked + window
		b.Pushed = append(b.Pushed, Push{ID: e.ID, Grant: g})
		n++
	}
	b.Queue = slices.Delete(b.Queue, 0, n)
	return err
}

// fits reports whether the claim may stand beside the holders.
func (b *Book) fits(e *Entry) bool {
	free := e.Limit - e.Weight
	for i := range b.Held {
		if free -= b.Held[i].Weight; free < 0 {
			return false
		}
	}
	return true
}

// grant gives e a token and lets e hold.
func (b *Book) grant(m Moment, e Entry) (driver.Grant, error) {
	if err := b.mint(m, &e); err != nil {
		return driver.Grant{}, err
	}
	e.Since = m.Wall
	b.Held = append(b.Held, e)
	return e.granted(e.TTL), nil
}

// refusal describes the holder that expires first, seen from a time that may be up to a
// grain late.
func (b *Book) refusal(now time.Duration) driver.Grant {
	var first *Entry
	for i := range b.Held {
		if e := &b.Held[i]; first == nil || e.Until < first.Until {
			first = e
		}
	}
	if first == nil {
		return driver.Grant{Floor: b.Floor}
	}
	return driver.Grant{Left: max(first.Until-now, 0), Holder: first.holder(now), Floor: b.Floor}
}

// remove ends the claim with this id and reports whether there was one.
func (b *Book) remove(id string) bool {
	if i := index(b.Held, id); i >= 0 {
		b.Held = slices.Delete(b.Held, i, i+1)
		return true
	}
	if i := index(b.Queue, id); i >= 0 {
		b.Queue = slices.Delete(b.Queue, i, i+1)
		return true
	}
	return false
}

// Before returns the last claim that must end before the queued claim with this id is
// granted, nil if there is no such claim.
func (b *Book) Before(id string) *Entry {
	i := index(b.Queue, id)
	if i < 0 {
		return nil
	}
	room := b.Queue[i].Limit - b.Queue[i].Weight
	for _, entries := range [][]Entry{b.Queue[:i], b.Held} {
		for n := len(entries) - 1; n >= 0; n-- {
			if entries[n].Weight > room {
				return &entries[n]
			}
		}
	}
	return nil
}

// Ahead returns how many claims are before the queued claim with this id.
func (b *Book) Ahead(id string) int { return b.ahead(index(b.Queue, id)) }

// ahead returns how many claims are before the claim with this index of the queue.
func (b *Book) ahead(i int) int {
	if i == len(b.Queue)-1 && i > 0 {
		return i + b.Omitted // 0 unless Part
	}
	return i
}

// Has reports whether a claim with this id holds or waits.
func (b *Book) Has(id string) bool { return index(b.Held, id) >= 0 || index(b.Queue, id) >= 0 }

// addTomb adds a tomb, or extends an existing tomb of the same id.
func (b *Book) addTomb(t Tomb) {
	if i := b.tomb(t.ID); i >= 0 {
		b.Tombs[i].Until = max(b.Tombs[i].Until, t.Until)
		return
	}
	b.Tombs = append(b.Tombs, t)
}

func (b *Book) tomb(id string) int {
	return slices.IndexFunc(b.Tombs, func(t Tomb) bool { return t.ID == id })
}

// gone is the error for a claim missing from the book.
func (b *Book) gone(id string) error {
	if i := b.tomb(id); i >= 0 && b.Tombs[i].Broken {
		return driver.ErrBroken
	}
	return driver.ErrLost
}

func index(entries []Entry, id string) int {
	for i := range entries {
		if entries[i].ID == id {
			return i
		}
	}
	return -1
}
