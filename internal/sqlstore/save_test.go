package sqlstore

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
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
			var b book.Book
			if err := acquire(append([]driver.Ask{exclusive("holder")}, test.waiters...)...)(&b); err != nil {
				t.Fatal(err)
			}
			d := begin("key", state{}, &b)
			d.freed = b.Release(at(test.at), test.release) == nil
			if got := d.handsOver(); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

// A waiter leaves just when the holder has expired: the first waiter holds, but one more claim
// is gone.
func TestLeavingIsNoHandOver(t *testing.T) {
	var b book.Book
	if err := acquire(exclusive("holder"), exclusive("one"), exclusive("two"), exclusive("three"))(&b); err != nil {
		t.Fatal(err)
	}
	b.Held[0].Until = at(time.Second).Now
	d := begin("key", state{}, &b)
	d.freed = b.Release(at(time.Second), driver.Release{Claim: exclusive("two").Claim}) == nil
	if !d.freed || len(b.Pushed) != 1 || d.handsOver() {
		t.Errorf("%+v was written as a hand-over", b)
	}
}
