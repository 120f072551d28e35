package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Tokens checks [Growing]: a lock has a token, which is larger than all that were known
// before it was asked for. Readers may share that of their phase. Slots that are held at the same
// time need only differ, and a goroutine may come by a claim to one that the store
// has granted to another of its process, for as long as such a claim stands: so
// their tokens are larger than those that were known lapse before.
func (r *Run) Tokens(lapse time.Duration) (all []Violation) {
	lapse += r.steps()
	for key, holds := range r.granted() {
		for _, h := range holds {
			if h.Token == 0 {
				all = append(all, Violation{Check: Growing, Key: key, At: h.Got, Text: fmt.Sprintf("%s: the store has given it none", h)})
			}
		}
		holds = slices.DeleteFunc(holds, func(h *Hold) bool { return h.Token == 0 })
		all = append(all, order(key, holds, int64(lapse))...)
		all = append(all, distinct(key, holds)...)
		all = append(all, r.entered(holds)...)
	}
	return all
}

// steps is the longest step of a clock. Claims may stand for so much longer.
func (r *Run) steps() (longest time.Duration) {
	for _, f := range r.Faults {
		longest = max(longest, time.Duration(f.Step).Abs())
	}
	return longest
}

// order looks at each lock with what had been got before it was asked for, or for
// slots lapse before that.
func order(key string, got []*Hold, lapse int64) (all []Violation) {
	since := func(h *Hold) int64 {
		if h.slot() {
			return h.Asked - lapse
		}
		return h.Asked
	}
	asked := slices.Clone(got)
	slices.SortFunc(asked, func(a, b *Hold) int { return cmp.Compare(since(a), since(b)) })
	var writer, any *Hold // with the largest tokens so far
	phases := make(map[uint64]*Hold)
	for _, h := range got {
		if phases[h.Token] == nil {
			phases[h.Token] = h
		}
	}
	for _, h := range asked {
		for len(got) > 0 && got[0].Got < since(h) {
			if any == nil || got[0].Token > any.Token {
				any = got[0]
			}
			if !got[0].reader() && (writer == nil || got[0].Token > writer.Token) {
				writer = got[0]
			}
			got = got[1:]
		}
		switch {
		case h.reader() && writer != nil && h.Token <= writer.Token:
			v := h.notLarger(key, writer)
			v.Joined, v.Reach = true, phases[h.Token].Got // readers may have let each other in ever since
			all = append(all, v)
		case any != nil && (h.Token < any.Token || h.Token == any.Token && !h.reader()):
			v := h.notLarger(key, any)
			v.Joined = h.reader()
			all = append(all, v)
		}
	}
	return all
}

// Succession checks [Growing] of locks that were asked for at the same time. Of two
// that exclude each other, the first to be got was the first to be granted: had
// the store granted the other before, that would still have been in the way. This
// says nothing where the store has not kept them apart.
func (r *Run) Succession() (all []Violation) {
	for key, holds := range r.granted() {
		var writer, any *Hold // with the largest tokens so far
		for _, h := range holds {
			if h.Token == 0 || h.slot() {
				continue
			}
			before := any
			if h.reader() {
				before = writer
			}
			if before != nil && before.Got >= h.Asked && h.Token <= before.Token {
				all = append(all, Violation{Check: Growing, Given: Exclusive, Key: key, At: h.Got, Reach: reach(min(h.Until, before.Until)), Text: fmt.Sprintf(
					"%s was got after %s, which excludes it", h, before)})
			}
			if any == nil || h.Token > any.Token {
				any = h
			}
			if !h.reader() && (writer == nil || h.Token > writer.Token) {
				writer = h
			}
		}
	}
	return all
}

// slot reports whether a lock is one of few.
func (h *Hold) slot() bool { return h.Limit < driver.MaxWeight }

// reader reports whether a lock is one of any number.
func (h *Hold) reader() bool { return h.Weight < h.Limit && !h.slot() }

func (h *Hold) notLarger(key string, than *Hold) Violation {
	return Violation{Check: Growing, Key: key, At: h.Got, Text: fmt.Sprintf("%s was asked for after %s had been got", h, than)}
}

// distinct finds locks that share a token, though they are no readers.
func distinct(key string, holds []*Hold) (all []Violation) {
	seen := make(map[uint64]*Hold)
	for _, h := range holds {
		other := seen[h.Token]
		if other != nil && !(h.reader() && other.reader()) {
			all = append(all, Violation{Check: Growing, Key: key, At: h.Got, Text: fmt.Sprintf("the same token twice: %s and %s", other, h)})
		}
		seen[h.Token] = h
	}
	return all
}

// entered finds locks that were not what they had been when they were entered
// again. A loss may have been told, and written down, by another goroutine a little
// after the one that was refused has written that.
func (r *Run) entered(holds []*Hold) (all []Violation) {
	for _, h := range holds {
		for _, e := range h.Entered {
			if !e.No && e.Token != 0 && e.Token != h.Token {
				all = append(all, Violation{Check: Growing, Key: h.Key, At: e.At, Text: fmt.Sprintf("%s was entered again with token %d", h, e.Token)})
			}
			lost := min(h.Lost, h.Dying, h.Until)
			if e.No && e.At < lost-late-r.stalled(h.Who, Span{e.At, lost}) {
				all = append(all, Violation{Check: Growing, Key: h.Key, At: e.At, Text: fmt.Sprintf("%s cannot be entered again: %s", h, e.Note)})
			}
		}
	}
	return all
}
