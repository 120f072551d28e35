package sqlstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/must"
)

// A release is a hand-over only if a claim that joins meanwhile, or stays, changes nothing.
func TestHandsOver(t *testing.T) {
	reader := weighing(exclusive("reader"), 1, driver.MaxWeight)
	one, two := exclusive("one"), exclusive("two")
	ends := func(a driver.Ask) driver.Release { return driver.Release{Claim: a.Claim} }
	late := ends(exclusive("holder"))
	late.Late = true
	for _, test := range []struct {
		name    string
		waiters []driver.Ask
		at      time.Duration
		release driver.Release
		want    bool
	}{
		{"several wait", []driver.Ask{one, two}, 0, ends(exclusive("holder")), true},
		{"one waits", []driver.Ask{one}, 0, ends(exclusive("holder")), false},
		{"a reader is first", []driver.Ask{reader, two}, 0, ends(exclusive("holder")), false},
		{"a reader is behind", []driver.Ask{one, reader}, 0, ends(exclusive("holder")), true},
		{"a tomb", []driver.Ask{one, two}, 0, late, false},
		{"a waiter leaves", []driver.Ask{one, two}, 0, ends(two), false},
		{"the first waiter leaves", []driver.Ask{one, two}, 0, ends(one), false},
		{"the waiters are dead", []driver.Ask{one, two}, 5 * time.Second, ends(exclusive("holder")), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := begun(t, acquire(append([]driver.Ask{exclusive("holder")}, test.waiters...)...))
			d.freed = d.book.Release(at(test.at), test.release) == nil
			if got := d.handsOver(); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

// A waiter leaves just when the holder has expired: the first waiter holds, but one more claim
// is gone.
func TestLeavingIsNoHandOver(t *testing.T) {
	d := begun(t, acquire(exclusive("holder"), exclusive("one"), exclusive("two"), exclusive("three")))
	d.book.Held[0].Until = at(time.Second).Now
	d.freed = d.book.Release(at(time.Second), driver.Release{Claim: exclusive("two").Claim}) == nil
	if !d.freed || len(d.book.Pushed) != 1 || d.handsOver() {
		t.Errorf("%+v was written as a hand-over", d.book)
	}
}

// begun is a decision about the row of a book.
func begun(t *testing.T, do func(*book.Book) error) decision {
	t.Helper()
	var b book.Book
	if err := do(&b); err != nil {
		t.Fatal(err)
	}
	st := state{now: micros(at(0).Now), row: row{version: 1, format: format}}
	if err := st.fill(&b, at(0).Now); err != nil {
		t.Fatal(err)
	}
	return must.Get(begin("key", st))
}

// A scribe is the client of a table with one row. The scribe keeps the writes, and lets the
// first ones be in vain.
type scribe struct {
	held
	book    *book.Book
	vain    int
	written []Statement
}

func (s *scribe) Query(_ context.Context, st Statement, each func(Scan) error) error {
	if strings.Contains(st.Text, "RETURNING name") {
		return nil // no claim is alone on the key
	}
	return each(func(dest ...any) error {
		if len(dest) == 10 { // to load
			return s.row(s.book, dest)
		}
		s.written = append(s.written, st)
		*dest[0].(*int) = 1 // message sent
		return nil
	})
}

func (s *scribe) Exec(_ context.Context, st Statement) (Result, error) {
	s.written = append(s.written, st)
	if len(s.written) <= s.vain {
		return Result{}, nil
	}
	return Result{Rows: 1}, nil
}

// If claims or tombs in the row have expired, and no claim waits, a renewal writes the whole row,
// and otherwise the claim alone. A renewal that loses a race with the whole row then writes the
// claim alone.
func TestExpiredClaimsAreRemoved(t *testing.T) {
	reader := func(id string) driver.Ask { return weighing(exclusive(id), 1, driver.MaxWeight) }
	for _, test := range []struct {
		name  string
		over  func(b *book.Book)
		vain  int
		whole []bool
	}{
		{"nothing", func(*book.Book) {}, 0, []bool{false}},
		{"a holder", func(b *book.Book) { b.Held[1].Until, b.Queue = at(0).Now, nil }, 0, []bool{true}},
		{"a waiter", func(b *book.Book) { b.Queue[0].Until = at(0).Now }, 0, []bool{true}},
		{"a tomb", func(b *book.Book) { b.Tombs, b.Queue = []book.Tomb{{ID: "gone", Until: at(0).Now}}, nil }, 0, []bool{true}},
		{"a holder, and a claim waits", func(b *book.Book) { b.Held[1].Until = at(0).Now }, 0, []bool{false}},
		{"a waiter, and a lost race", func(b *book.Book) { b.Queue[0].Until = at(0).Now }, 1, []bool{true, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := &scribe{book: new(book.Book), vain: test.vain}
			if err := acquire(reader("one"), reader("two"), exclusive("writer"))(client.book); err != nil {
				t.Fatal(err)
			}
			test.over(client.book)
			s := must.Get(New(client, Postgres, nil))
			defer s.Close()
			err := s.Renew(t.Context(), []driver.Renewal{{Claim: reader("one").Claim}})[0]
			var whole []bool
			for _, st := range client.written {
				whole = append(whole, !strings.Contains(st.Text, "jsonb_set"))
			}
			if err != nil || !slices.Equal(whole, test.whole) {
				t.Errorf("%v, %v; want %v", whole, err, test.whole)
			}
		})
	}
}

// Two releases of one key in one call notify the waiters that each of them grants a slot.
func TestReleasesTogetherNotify(t *testing.T) {
	slot := func(id string) driver.Ask { return weighing(exclusive(id), 1, 2) }
	client := &scribe{book: new(book.Book)}
	if err := acquire(slot("one"), slot("two"), slot("first"), slot("second"))(client.book); err != nil {
		t.Fatal(err)
	}
	s := must.Get(New(client, Postgres, nil))
	defer s.Close()
	ends := func(id string) driver.Release { return driver.Release{Claim: slot(id).Claim} }
	for i, err := range s.Release(t.Context(), []driver.Release{ends("one"), ends("two")}) {
		if err != nil {
			t.Errorf("release %d: %v", i, err)
		}
	}
	if len(client.written) != 1 {
		t.Fatalf("%d writes, want 1", len(client.written))
	}
	args := client.written[0].Args
	messages := args[len(args)-1].(string)
	if !strings.Contains(messages, "first") || !strings.Contains(messages, "second") {
		t.Errorf("the messages %s, want one for each waiter", messages)
	}
}
