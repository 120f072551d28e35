package book

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Holders returns what people may know of the claims that stand at the time
// now: those that hold, then those in line. It changes nothing.
func (b *Book) Holders(now time.Duration) []driver.Holder {
	var list []driver.Holder
	for _, entries := range [][]Entry{b.Held, b.Queue} {
		for i := range entries {
			if e := &entries[i]; e.Until > now {
				list = append(list, e.holder(now))
			}
		}
	}
	return list
}

// Live reports whether any claim holds or stands in line at the time now.
func (b *Book) Live(now time.Duration) bool {
	for _, entries := range [...][]Entry{b.Held, b.Queue} {
		for i := range entries {
			if entries[i].Until > now {
				return true
			}
		}
	}
	return false
}

// Empty reports whether nothing in the book matters any more at the time now,
// but for its floor.
func (b *Book) Empty(now time.Duration) bool {
	for i := range b.Tombs {
		if b.Tombs[i].Until > now {
			return false
		}
	}
	return !b.Live(now)
}

func (e Entry) shared() bool {
	return driver.Claim{Weight: e.Weight, Limit: e.Limit}.Shared()
}

// granted is the grant that e stands for, told with this TTL.
func (e *Entry) granted(ttl time.Duration) driver.Grant {
	return driver.Grant{OK: true, Fence: e.Fence, Span: e.Span, TTL: ttl}
}

// holder is what people may know of e.
func (e *Entry) holder(now time.Duration) driver.Holder {
	return driver.Holder{
		ID: driver.PublicID(e.ID), Owner: e.Owner, Note: e.Note,
		Fence: e.Fence, Since: time.UnixMicro(e.Since), Left: max(e.Until-now, 0),
		Weight: e.Weight, Limit: e.Limit, Waiting: e.Fence == 0,
	}
}
