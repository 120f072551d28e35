package book

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func TestRefusalTells(t *testing.T) {
	d := &desk{T: t}
	long, short := slot("a", 2), lasting(slot("b", 2), 4*sec)
	short.Owner, short.Note = "bob", "a note"
	d.granted(0, long)
	fence := d.granted(1*sec, short).Fence
	g := d.refused(2*sec, try(slot("x", 2)))
	want := driver.Holder{
		ID: driver.PublicID("b"), Owner: "bob", Note: "a note", Fence: fence,
		Since: time.UnixMicro(epoch + 1_000_000), Left: 3 * sec, Weight: 1, Limit: 2,
	}
	if g.Left != 3*sec || g.Holder != want {
		t.Errorf("refused with %+v, want the holder that runs out first, in 3s", g)
	}
}

func TestHolders(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, lasting(slot("a", 2), 2*sec))
	fence := d.granted(0, slot("b", 2)).Fence
	d.refused(1*sec, slot("c", 2))
	d.refused(sec*3/2, slot("c", 2)) // It waits since it first asked.
	want := []driver.Holder{
		{ID: driver.PublicID("b"), Fence: fence, Since: time.UnixMicro(epoch), Left: 8 * sec, Weight: 1, Limit: 2},
		{ID: driver.PublicID("c"), Since: time.UnixMicro(epoch + 1_000_000), Left: sec * 5 / 2, Weight: 1, Limit: 2, Waiting: true},
	}
	if got := d.Holders(2 * sec); !slices.Equal(got, want) {
		t.Errorf("holders\n%+v, want\n%+v", got, want)
	}
	d.shows(0, "a b|c") // Looking changes nothing.
	if len(d.Book.Held) != 2 {
		t.Error("Holders dropped an entry")
	}
}

func TestEmpty(t *testing.T) {
	d := &desk{T: t}
	if !d.Empty(0) || d.Live(0) {
		t.Error("a new book is not empty")
	}
	d.granted(0, writer("a"))
	d.refused(9*sec, writer("b"))
	if !d.Live(10*sec) || d.Empty(11*sec) {
		t.Error("a book with a waiter is empty")
	}
	if d.Live(12*sec) || !d.Empty(12*sec) {
		t.Error("a book is not empty when all has run out")
	}
	_ = d.Release(at(12*sec), late(writer("z")))
	if d.Empty(22*sec-1) || d.Live(12*sec) || !d.Empty(22*sec) {
		t.Error("a tombstone is to stay for ten seconds, and is no claim")
	}
}
