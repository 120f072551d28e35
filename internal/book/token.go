package book

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
)

// maxToken is the largest whole number below which all others are exact in a
// float64, so that Lua, JSON and spreadsheets can tell neighbours apart.
const maxToken = 1 << 53

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
	if b.Floor >= maxToken || last >= maxToken {
		return fmt.Errorf("%w: the next fencing token, %d, is not below 2^53; is the clock right?", driver.ErrInvalid, first)
	}
	b.Floor, e.Fence, b.Phase = last, first, 0
	if reader {
		b.Phase = first
	}
	return nil
}
