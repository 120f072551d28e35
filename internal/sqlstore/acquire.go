package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// An asking is one call of Acquire, and what the store knows about the caller.
type asking struct {
	driver.Ask
	from string // where the client listens, "" if the client does not listen
}

// entry is the claim as written.
func (a *asking) entry() book.Entry {
	return book.Entry{
		ID: a.ID, Owner: a.Owner, Note: a.Note, Session: a.from,
		Weight: a.Weight, Limit: a.Limit, TTL: a.TTL, Span: a.Span,
	}
}

// roomy is how long a place is given that must last for d: a little longer, so that a request
// soon after need not write.
func roomy(d time.Duration) time.Duration { return d + d/8 }

// spare is how much longer a place behind so many claims is given, because a write takes longer in a
// long queue.
func spare(c driver.Claim, ahead int) time.Duration { return c.Alive() * time.Duration(ahead) / 64 }

// An answer is the answer to an asking.
type answer struct {
	grant  driver.Grant
	queued bool          // the claim waits in the queue
	crowd  int           // how many other claims wait
	behind time.Duration // how long before this request the claim joined the queue
}

// rule returns the rule of Acquire. Waiters that no store wakes retry again and again, at
// first after milliseconds. Other waiters ask once more after the first refusal. So a request
// of a waiter writes only if the place would end soon. The row keeps the time of the request
// that joined the queue or changed the terms.
//
// The row tells whether a write of this call has changed anything: a client without an answer
// may have sent the write twice.
func (a *asking) rule(ctx context.Context, got *answer) rule {
	return func(m book.Moment, b *book.Book) (change, error) {
		if !b.Has(a.ID) {
			detached.Unwritten(ctx)
		}
		before := known(b, a.ID, m.Now)
		var err error
		*got = answer{}
		got.grant, err = b.Acquire(m, a.Ask, a.from)
		now := find(b.Queue, a.ID)
		if now == nil {
			return change{keep: got.grant.OK || a.Wait, extend: extended(before, b, a.ID)}, err
		}
		got.queued, got.crowd = true, len(b.Queue)+b.Omitted-1
		done := change{keep: true, light: true}
		if unchanged(before, *now) {
			now.Asked = before.Asked
			got.behind = max(m.Now-now.Asked, 0) // the clock may have been set back
			if before.Until >= now.Until {
				return change{}, err
			}
		}
		if before.ID != "" {
			done.stay = now
		} else {
			done.join = now
		}
		now.Until = m.Now + roomy(now.Until-m.Now) + spare(a.Claim, b.Ahead(a.ID))
		return done, err
	}
}

// find returns the entry with this id, nil if there is no such entry.
func find(entries []book.Entry, id string) *book.Entry {
	i := slices.IndexFunc(entries, func(e book.Entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return &entries[i]
}

// known returns a copy of the entry with this id that holds or waits, and has not expired.
func known(b *book.Book, id string, now time.Duration) (e book.Entry) {
	for _, entries := range [][]book.Entry{b.Held, b.Queue} {
		if found := find(entries, id); found != nil && found.Until > now {
			e = *found
		}
	}
	return e
}

// extended returns the entry with this id, if the entry holds and only the times have changed
// since before. Otherwise extended returns nil.
func extended(before book.Entry, b *book.Book, id string) *book.Entry {
	if e := find(b.Held, id); e != nil && !e.Left && unchanged(before, *e) {
		return e
	}
	return nil
}

// unchanged reports whether a retry has the same terms as before.
func unchanged(before, now book.Entry) bool {
	now.Until, now.Asked = before.Until, before.Asked
	now.TTL = span(micros(now.TTL)) // as the row has it
	return now == before
}
