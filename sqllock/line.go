package sqllock

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/errand"
)

// An asking is a claim that is asked for.
type asking struct {
	claim   driver.Claim
	from    string // where its client listens, "" if it does not
	watched bool   // its owner is told of a grant, which counts from when it asked last
}

// An answer is that to an asking.
type answer struct {
	grant driver.Grant
	lined bool // the claim stands in line
}

// rule is that of Acquire. Who waits without being woken asks again and again, at
// first after milliseconds. So that most of that writes nothing, a place in line
// is given for a little longer than it must last.
//
// It is the row that tells whether a write of this call has changed anything: clients that
// are not sure may have sent it twice.
func (a *asking) rule(ctx context.Context, got *answer) rule {
	return func(m book.Moment, b *book.Book) (change, error) {
		if !b.Has(a.claim.ID) {
			errand.Unwritten(ctx)
		}
		var before book.Entry
		if e := place(b, a.claim.ID); e != nil {
			before = *e
		}
		var err error
		got.grant, err = b.Acquire(m, a.claim, a.from)
		now := place(b, a.claim.ID)
		got.lined = now != nil
		if now == nil || a.watched {
			return change{keep: got.grant.OK || a.claim.Wait}, err
		}
		if before.Until >= now.Until && unchanged(before, *now) {
			return change{}, err
		}
		now.Until += a.claim.Alive() / 8
		return change{keep: true}, err
	}
}

// place returns what stands in line with this id, nil if nothing does.
func place(b *book.Book, id string) *book.Entry {
	i := slices.IndexFunc(b.Queue, func(e book.Entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return &b.Queue[i]
}

// unchanged reports whether a claim has been asked for again as it was.
func unchanged(before, now book.Entry) bool {
	now.Until, now.Asked = before.Until, before.Asked
	return now == before
}
