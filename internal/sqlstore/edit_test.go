package sqlstore

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/must"
)

// SQL Server searches for texts of 8,000 bytes at most. A note of 1,024 bytes can be longer as JSON.
func TestEditSeeksNoLongText(t *testing.T) {
	s := must.Get(New(&scribe{}, SQLServer, nil))
	defer s.Close()
	short, long := strings.Repeat("語", driver.MaxText/3), strings.Repeat("<", driver.MaxText)
	release := func(b *book.Book) error { return b.Release(at(0), driver.Release{Claim: exclusive("holder").Claim}) }
	for _, test := range []struct {
		name                string
		holder, first, last string // notes
		change              func(d *decision)
		want                string
	}{
		{"renew", short, long, long, func(d *decision) { d.extend = &d.book.Held[0] }, SQLServer.swap},
		{"renew with a long note", long, short, short, func(d *decision) { d.extend = &d.book.Held[0] }, ""},
		{"join", long, long, long, func(d *decision) { d.join = &book.Entry{ID: "more", Note: long} }, SQLServer.add},
		{"stay", long, short, long, func(d *decision) { d.stay = &d.book.Queue[0] }, SQLServer.swap},
		{"stay with a long note", short, long, short, func(d *decision) { d.stay = &d.book.Queue[0] }, ""},
		{"leave", long, long, short, func(d *decision) { d.leave = "last" }, SQLServer.swap},
		{"leave with a long note", short, short, long, func(d *decision) { d.leave = "last" }, ""},
		{"the first leaves", short, short, short, func(d *decision) { d.leave = "first" }, ""},
		{"hand over", short, short, long, func(d *decision) { d.freed = release(d.book) == nil }, SQLServer.relay},
		{"hand over from a long note", long, short, short, func(d *decision) { d.freed = release(d.book) == nil }, ""},
		{"hand over to a long note", short, long, short, func(d *decision) { d.freed = release(d.book) == nil }, ""},
	} {
		holder, first, last := exclusive("holder"), exclusive("first"), exclusive("last")
		holder.Note, first.Note, last.Note = test.holder, test.first, test.last
		d := begun(t, acquire(holder, first, last))
		test.change(&d)
		if statement, _ := s.edit(&d, !d.freed); statement != test.want {
			t.Errorf("%s: the statement %q, want %q", test.name, statement, test.want)
		}
	}
}
