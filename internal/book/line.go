package book

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// maxToken is the largest whole number below which all others are exact in a
// float64, so that Lua, JSON and spreadsheets can tell neighbours apart.
const maxToken = 1 << 53

// expire begins a call: it drops whatever has run out.
func (b *Book) expire(now time.Duration) {
	b.Pushed = b.Pushed[:0]
	b.Held = standing(b.Held, now)
	b.Queue = standing(b.Queue, now)
	b.Tombs = slices.DeleteFunc(b.Tombs, func(t Tomb) bool { return t.Until <= now })
}

// standing drops the entries that have run out. Mostly none has, so it looks
// before it moves anything.
func standing(entries []Entry, now time.Duration) []Entry {
	for i := range entries {
		if entries[i].Until <= now {
			return slices.DeleteFunc(entries, func(e Entry) bool { return e.Until <= now })
		}
	}
	return entries
}

// handOff lets in those in line, first come first, while the next one fits.
// It fails when there are no tokens left.
func (b *Book) handOff(m Moment) error {
	n := 0
	var err error
	for n < len(b.Queue) && b.fits(&b.Queue[n]) {
		e := b.Queue[n]
		window := driver.Claim{TTL: e.TTL}.Alive()
		e.Until = m.Now + window
		var g driver.Grant
		if g, err = b.grant(m, e); err != nil {
			break
		}
		// The owner counts from before it asked, which it did Asked ago.
		g.TTL = m.Now - e.Asked + window
		b.Pushed = append(b.Pushed, Push{ID: e.ID, Grant: g})
		n++
	}
	b.Queue = slices.Delete(b.Queue, 0, n)
	return err
}

// fits reports whether the claim may stand beside those that hold.
func (b *Book) fits(e *Entry) bool {
	free := e.Limit - e.Weight
	for i := range b.Held {
		if free -= b.Held[i].Weight; free < 0 {
			return false
		}
	}
	return true
}

// grant gives e a token and lets it hold.
func (b *Book) grant(m Moment, e Entry) (driver.Grant, error) {
	if err := b.mint(m, &e); err != nil {
		return driver.Grant{}, err
	}
	e.Since = m.Wall
	b.Held = append(b.Held, e)
	return e.granted(e.TTL), nil
}

// mint gives e its token. Tokens are the wall clock's microseconds or the next
// number, whichever is larger: they grow when the clock steps back, and also
// when the book was lost.
func (b *Book) mint(m Moment, e *Entry) error {
	reader := e.shared()
	if reader && b.Phase != 0 && slices.ContainsFunc(b.Held, Entry.shared) {
		e.Fence, e.Span = b.Phase, 1
		return nil
	}
	e.Span = min(max(e.Span, 1), driver.MaxSpan)
	if reader {
		e.Span = 1
	}
	first := max(b.Floor+1, uint64(max(m.Wall, 0)))
	last := first + uint64(e.Span) - 1
	if last >= maxToken || first <= b.Floor {
		return fmt.Errorf("%w: the next fencing token, %d, is not below 2^53; is the clock right?", driver.ErrInvalid, first)
	}
	b.Floor, e.Fence, b.Phase = last, first, 0
	if reader {
		b.Phase = first
	}
	return nil
}

// refusal tells of the claim in the way that runs out first.
func (b *Book) refusal(now time.Duration) driver.Grant {
	var first *Entry
	for i := range b.Held {
		if e := &b.Held[i]; first == nil || e.Until < first.Until {
			first = e
		}
	}
	if first == nil {
		return driver.Grant{}
	}
	return driver.Grant{Retry: first.Until - now, Holder: first.holder(now)}
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

// bury adds a tomb, or makes the one with this id last as long.
func (b *Book) bury(t Tomb) {
	if i := b.tomb(t.ID); i >= 0 {
		b.Tombs[i].Until = max(b.Tombs[i].Until, t.Until)
		return
	}
	b.Tombs = append(b.Tombs, t)
}

func (b *Book) tomb(id string) int {
	return slices.IndexFunc(b.Tombs, func(t Tomb) bool { return t.ID == id })
}

// gone is the error for a claim that the book does not hold.
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
