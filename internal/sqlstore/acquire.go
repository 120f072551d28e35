package sqlstore

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// An asking is one call of Acquire, and what the store knows about the caller.
type asking struct {
	driver.Ask
	from    string // where the client listens, "" if the client does not listen
	watched bool   // the owner is notified of a grant, whose TTL counts from the last request
}

// An answer is the answer to an asking.
type answer struct {
	grant  driver.Grant
	queued bool // the claim waits in the queue
}

// rule returns the rule of Acquire. A waiter that is not woken retries again and again,
// at first after milliseconds. A place in the queue lasts a little longer than necessary,
// so that most retries write nothing.
//
// The row tells whether a write of this call has changed anything: a client that is not
// sure may have sent the write twice.
func (a *asking) rule(ctx context.Context, got *answer) rule {
	return func(m book.Moment, b *book.Book) (change, error) {
		if !b.Has(a.ID) {
			detached.Unwritten(ctx)
		}
		var before book.Entry
		if e := queued(b, a.ID); e != nil {
			before = *e
		}
		var err error
		got.grant, err = b.Acquire(m, a.Ask, a.from)
		now := queued(b, a.ID)
		got.queued = now != nil
		if now == nil || a.watched {
			return change{keep: got.grant.OK || a.Wait}, err
		}
		if before.Until >= now.Until && unchanged(before, *now) {
			return change{}, err
		}
		now.Until += a.Alive() / 8
		return change{keep: true}, err
	}
}

// queued returns the entry in the queue with this id, nil if there is no such entry.
func queued(b *book.Book, id string) *book.Entry {
	i := slices.IndexFunc(b.Queue, func(e book.Entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return &b.Queue[i]
}

// unchanged reports whether a retry has the same terms as before.
func unchanged(before, now book.Entry) bool {
	now.Until, now.Asked = before.Until, before.Asked
	return now == before
}
