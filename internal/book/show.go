package book

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Holders returns the public view of the claims that stand at the time now: first the
// holders, then the queue. It changes nothing.
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

// Live reports whether a claim holds or is queued at the time now.
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

// Empty reports whether the book contains nothing of use at the time now, except its floor.
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

// granted is the grant of e, with this TTL.
func (e *Entry) granted(ttl time.Duration) driver.Grant {
	return driver.Grant{OK: true, Fence: e.Fence, Span: e.Span, TTL: ttl}
}

// holder is the public view of e.
func (e *Entry) holder(now time.Duration) driver.Holder {
	return driver.Holder{
		ID: driver.PublicID(e.ID), Owner: e.Owner, Note: e.Note,
		Fence: e.Fence, Since: time.UnixMicro(e.Since), Left: max(e.Until-now, 0),
		Weight: e.Weight, Limit: e.Limit, Waiting: e.Fence == 0,
	}
}
