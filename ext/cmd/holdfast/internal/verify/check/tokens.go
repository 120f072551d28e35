package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
)

// Tokens checks [Growing]: a token is larger than all that were known before it was
// asked for. Readers may share that of their phase, and slots that are held at
// the same time need only differ.
func (r *Run) Tokens() (all []Violation) {
	for key, holds := range r.granted() {
		holds = slices.DeleteFunc(holds, func(h *Hold) bool { return h.Token == 0 })
		all = append(all, order(key, holds)...)
		all = append(all, distinct(key, holds)...)
		all = append(all, entered(holds)...)
	}
	return all
}

// order looks at each lock with what had been got before it was asked for.
func order(key string, got []*Hold) (all []Violation) {
	asked := slices.Clone(got)
	slices.SortFunc(asked, func(a, b *Hold) int { return cmp.Compare(a.Asked, b.Asked) })
	var writer, any *Hold // with the largest tokens so far
	phases := make(map[uint64]*Hold)
	for _, h := range got {
		if phases[h.Token] == nil {
			phases[h.Token] = h
		}
	}
	for _, h := range asked {
		for len(got) > 0 && got[0].Got < h.Asked {
			if any == nil || got[0].Token > any.Token {
				any = got[0]
			}
			if !got[0].reader() && (writer == nil || got[0].Token > writer.Token) {
				writer = got[0]
			}
			got = got[1:]
		}
		switch {
		case h.slot():
		case h.reader() && writer != nil && h.Token <= writer.Token:
			v := h.notLarger(key, writer)
			v.Reach = phases[h.Token].Got // readers may have let each other in ever since
			all = append(all, v)
		case any != nil && (h.Token < any.Token || h.Token == any.Token && !h.reader()):
			all = append(all, h.notLarger(key, any))
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
// again.
func entered(holds []*Hold) (all []Violation) {
	for _, h := range holds {
		for _, e := range h.Entered {
			if !e.No && e.Token != 0 && e.Token != h.Token {
				all = append(all, Violation{Check: Growing, Key: h.Key, At: e.At, Text: fmt.Sprintf("%s was entered again with token %d", h, e.Token)})
			}
			if e.No && e.At < min(h.Lost, h.Until) {
				all = append(all, Violation{Check: Growing, Key: h.Key, At: e.At, Text: fmt.Sprintf("%s cannot be entered again: %s", h, e.Note)})
			}
		}
	}
	return all
}
