package sqlstore

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

func at(d time.Duration) book.Moment {
	const began = 1_800_000_000_000_000
	return book.Moment{Now: span(began) + d, Wall: began + int64(d/time.Microsecond)}
}

func exclusive(id string) driver.Ask {
	return driver.Ask{Claim: driver.Claim{
		Key: "key", ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight,
		TTL: 10 * time.Second, Owner: "owner\\0", Note: "a\x00note",
	}, Wait: true, Span: 3}
}

func weighing(a driver.Ask, weight, limit int64) driver.Ask {
	a.Weight, a.Limit = weight, limit
	return a
}

// A row says what its book says, in both forms of a row.
func TestRowKeepsTheBook(t *testing.T) {
	reader := func(id string) driver.Ask { return weighing(exclusive(id), 1, driver.MaxWeight) }
	slot := func(id string) driver.Ask { return weighing(exclusive(id), 1, 2) }
	late := driver.Release{Claim: exclusive("gone").Claim, Late: true}
	left := exclusive("left")
	leave := driver.Renewal{Claim: left.Claim, Leave: true}
	tests := []struct {
		name string
		sole bool
		do   func(b *book.Book) error
	}{
		{"nobody", false, func(*book.Book) error { return nil }},
		{"writer", true, acquire(exclusive("a"))},
		{"reader", true, acquire(reader("a"))},
		{"slot", true, acquire(slot("a"))},
		{"odd id", true, acquire(exclusive("\x00\\\"é"))},
		{"readers", false, acquire(reader("a"), reader("b"))},
		{"slots", false, acquire(slot("a"), slot("b"))},
		{"in line", false, acquire(exclusive("a"), exclusive("b"), reader("c"))},
		{"tomb", false, func(b *book.Book) error { return ignore(b.Release(at(0), late), acquire(exclusive("a"))(b)) }},
		{"left", false, func(b *book.Book) error { return either(acquire(left)(b), b.Renew(at(0), leave)) }},
		{"an older token", false, func(b *book.Book) error {
			return either(acquire(slot("a"), slot("b"))(b), b.Release(at(0), driver.Release{Claim: slot("b").Claim}))
		}},
		{"broken", false, func(b *book.Book) error {
			err := acquire(exclusive("a"))(b)
			_, broken := b.Break(at(0), driver.PublicID("a"))
			return either(err, broken)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b book.Book
			if err := test.do(&b); err != nil {
				t.Fatal(err)
			}
			b.Pushed = nil
			r := row{version: 1, format: format}
			if err := r.fill(&b, at(0).Now); err != nil {
				t.Fatal(err)
			}
			if sole := r.sole != ""; sole != test.sole {
				t.Errorf("the row tells of a sole claim: %v, want %v", sole, test.sole)
			}
			if strings.Contains(r.claims+r.sole, "\x00") || strings.Contains(r.claims, `\u0000`) {
				t.Errorf("the row has a NUL, which Postgres cannot keep: %q", r.claims)
			}
			again, err := r.book("key", 0)
			if err != nil {
				t.Fatal(err)
			}
			if !same(b, *again) {
				t.Errorf("the row made\n%+v of\n%+v", *again, b)
			}
		})
	}
}

func acquire(all ...driver.Ask) func(*book.Book) error {
	return func(b *book.Book) error {
		for _, a := range all {
			if _, err := b.Acquire(at(0), a, "channel"); err != nil {
				return err
			}
		}
		return nil
	}
}

func either(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// ignore is for the answer of a release of what was never there.
func ignore(_, err error) error { return err }

// same compares what matters: empty and missing lists are alike, and a phase
// without readers means nothing.
func same(a, b book.Book) bool {
	for _, x := range []*book.Book{&a, &b} {
		x.Held, x.Queue, x.Tombs = append([]book.Entry{}, x.Held...), append([]book.Entry{}, x.Queue...), append([]book.Tomb{}, x.Tombs...)
	}
	return reflect.DeepEqual(a, b)
}

// A row that has been mangled by hand is an error that says so.
func TestMangledRow(t *testing.T) {
	for _, r := range []row{
		{version: 1, format: format, claims: `{"held":`},
		{version: 1, format: format, claims: ``},
		{version: 1, format: format, claims: `{}`, sole: "a"},
	} {
		if _, err := r.book("key", 0); err == nil || !strings.Contains(err.Error(), "make no sense") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestEscape(t *testing.T) {
	for _, s := range []string{"", "plain", `a\0b`, "a\x00b", `\`, "\x00\\\\0"} {
		e := escape(s)
		if strings.Contains(e, "\x00") || unescape(e) != s {
			t.Errorf("%q became %q and %q", s, e, unescape(e))
		}
		if !strings.HasPrefix(escape(s+"more"), e) {
			t.Errorf("%q does not begin what begins with it", e)
		}
	}
}

func TestTableNames(t *testing.T) {
	for name, want := range map[string]string{
		"locks":     `"locks_claims"`,
		"app.locks": `"app"."locks_claims"`,
	} {
		if got, err := Postgres.table(name, "_claims"); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", name, got, err, want)
		}
	}
	for _, name := range []string{".", "a.b.c", "a b", `a"b`, "a`b", "a;b", "1a", "a.", ".a", "é", strings.Repeat("a", 49)} {
		if _, err := New(MySQL.Client(nil), MySQL, &Options{Table: name}); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "cannot be a name") {
			t.Errorf("%q: %v, want an error that says what a name may be", name, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	if got, want := number(expand("a = ? AND b IN (?...)", 3), "$"), "a = $1 AND b IN ($2, $3, $4)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWidth(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 500: 512} {
		if got := width(n); got != want {
			t.Errorf("%d claims have lists of %d, want %d", n, got, want)
		}
	}
}

func TestMySQLCode(t *testing.T) {
	for text, want := range map[string]string{
		"Error 1213 (40001): Deadlock found": "1213",
		"Error 1146: no table":               "1146",
		"Error : none":                       "",
		"invalid connection":                 "",
	} {
		if got := mysqlCode(wrapped{text}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

type wrapped struct{ text string }

func (w wrapped) Error() string { return w.text }
