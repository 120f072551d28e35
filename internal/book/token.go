package book

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
)

// maxToken is 2^53. Every whole number up to 2^53 is exact in a float64; Lua, JSON and
// spreadsheets can therefore tell neighbours apart.
const maxToken = 1 << 53

// mint gives e its token, at least e.Fence. Tokens are the wall clock's microseconds or the
// next number, whichever is larger: tokens grow when the clock steps back, and also when
// the book was lost.
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
	most := uint64(maxToken - e.Span) // the largest number to begin with
	if b.Floor >= most {
		return fmt.Errorf("%w: the highest fencing token given is %d, which leaves too few below 2^53; was it changed, or a clock far ahead?", driver.ErrInvalid, b.Floor)
	}
	first := max(b.Floor+1, uint64(max(m.Wall, 0)), e.Fence)
	if first > most {
		return fmt.Errorf("%w: the next fencing token, %d, leaves too few below 2^53; is the clock right?", driver.ErrInvalid, first)
	}
	last := first + uint64(e.Span) - 1
	b.Floor, e.Fence, b.Phase = last, first, 0
	if reader {
		b.Phase = first
	}
	return nil
}

// raise raises the token of e to fence, unless it is as large already.
func (b *Book) raise(m Moment, e *Entry, fence uint64) error {
	if fence <= e.Fence {
		return nil
	}
	if err := b.leads(m, fence); err != nil {
		return err
	}
	e.Fence = fence
	b.Floor = max(b.Floor, fence+uint64(e.Span)-1)
	if e.shared() && b.Phase != 0 {
		b.Phase = max(b.Phase, fence)
	}
	return nil
}

// leads fails if a requested token is too far ahead.
func (b *Book) leads(m Moment, fence uint64) error {
	most := min(max(b.Floor, uint64(max(m.Wall, 0)))+driver.MaxLead, maxToken-driver.MaxSpan)
	if fence > most {
		return fmt.Errorf("%w: it asks for token %d, which is above %d; is a clock wrong?", driver.ErrInvalid, fence, most)
	}
	return nil
}
