package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Tokens checks [Growing]: every lock has a token, and the token is larger than every
// token known before the request. Readers may share the token of their phase. The tokens
// of slots that are held at the same time need only differ. A goroutine may take over a
// claim to a slot that the store has granted to its process, for as long as the claim
// stands. So the token of a slot is larger than the tokens that were known lapse before
// the request.
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

// steps returns the longest step of a clock. Claims may stand longer by the step.
func (r *Run) steps() (longest time.Duration) {
	for _, f := range r.Faults {
		longest = max(longest, time.Duration(f.Step).Abs())
	}
	return longest
}

// order compares each lock with the locks acquired before its request, or, for slots, lapse
// before its request.
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
			v.Joined, v.Reach = true, phases[h.Token].Got // readers may have joined readers ever since
			all = append(all, v)
		case any != nil && (h.Token < any.Token || h.Token == any.Token && !h.reader()):
			v := h.notLarger(key, any)
			v.Joined = h.reader()
			all = append(all, v)
		}
	}
	return all
}

// Succession checks [Growing] of locks that were requested at the same time. If two locks
// exclude each other, the lock acquired first was granted first: a second lock granted
// earlier would still have been in the way. Succession proves nothing if the store has not
// kept the locks apart.
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

// slot reports whether a lock is a slot.
func (h *Hold) slot() bool { return h.Limit < driver.MaxWeight }

// reader reports whether a lock is a read lock.
func (h *Hold) reader() bool { return h.Weight < h.Limit && !h.slot() }

func (h *Hold) notLarger(key string, than *Hold) Violation {
	return Violation{Check: Growing, Key: key, At: h.Got, Text: fmt.Sprintf("%s was asked for after %s had been got", h, than)}
}

// distinct finds locks that share a token, though the locks are not read locks.
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

// entered finds locks that had changed when their holders entered the locks again. A second
// goroutine may record the loss of a lock a little after the refused goroutine has recorded
// the refusal.
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
