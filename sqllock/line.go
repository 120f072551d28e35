package sqllock

import (
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// An answer is that to a claim which was asked for.
type answer struct {
	grant driver.Grant
	lined bool // it stands in line
}

// ask is the rule of Acquire. Who waits without being woken asks again and again,
// at first after milliseconds. So that most of that writes nothing, a place in
// line is given for a little longer than it must last.
func (s *Store) ask(c driver.Claim, a *answer) rule {
	return func(m book.Moment, b *book.Book) (change, error) {
		var before book.Entry
		if e := place(b, c.ID); e != nil {
			before = *e
		}
		var err error
		a.grant, err = b.Acquire(m, c, s.to)
		now := place(b, c.ID)
		a.lined = now != nil
		if now == nil || s.woken { // Whoever is told of its grant counts from when it asked last.
			return change{keep: a.grant.OK || c.Wait}, err
		}
		if before.Until >= now.Until && unchanged(before, *now) {
			return change{}, err
		}
		now.Until += c.Alive() / 8
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
