package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/must"
)

// A deaf Bell is that of a process that cannot hold a bell.
type deaf struct{}

func (deaf) To() string                          { return "" }
func (deaf) Hang(context.Context, time.Duration) {}
func (deaf) Ring()                               {}
func (deaf) Close() error                        { return nil }
func (deaf) Wait(context.Context, string, any, int64) (Heard, error) {
	return NoBell, errors.New("no bell")
}

// TestLooksLeaveAConnection: waiters that look at their rows leave a connection to renewals,
// though the server does not answer.
func TestLooksLeaveAConnection(t *testing.T) {
	onSlow(t, func(s *scene) {
		s.db.SetMaxOpenConns(3)
		r := NewRinging(s.Store, deaf{})
		for i := range 10 {
			c := driver.Claim{Key: fmt.Sprint("key ", i), ID: fmt.Sprint("id ", i), TTL: time.Minute}
			stop, err := r.Watch(s.Context(), c, func(driver.Grant) {})
			if err != nil {
				s.Fatal(err)
			}
			defer stop()
			r.freed(c.Key, new(book.Book)) // has the waiter look
		}
		time.Sleep(notifyLimit / 2)
		synctest.Wait()
		s.counts(2, 2)
		begin := time.Now()
		other := driver.Claim{Key: "other", ID: "other", TTL: time.Minute}
		if errs := r.Renew(s.Context(), []driver.Renewal{{Claim: other}}); time.Since(begin) > 0 {
			s.Errorf("a renewal returned %v after %v", errs, time.Since(begin))
		}
		r.end()
		r.looking.Wait()
	})
}

// TestLookKeepsItsConnection: a watch that ends while the server is slow costs no connection.
func TestLookKeepsItsConnection(t *testing.T) {
	onSlow(t, func(s *scene) {
		r := NewRinging(s.Store, deaf{})
		c := exclusive("id").Claim
		stop, err := r.Watch(s.Context(), c, func(driver.Grant) { s.Error("the waiter was woken after its watch") })
		if err != nil {
			s.Fatal(err)
		}
		s.counts(0, 0) // A look before the first refusal would be in vain.
		r.freed(c.Key, new(book.Book))
		s.counts(1, 1)
		stop()
		s.counts(1, 1)
		s.answers <- struct{}{}
		r.looking.Wait()
		s.leave("next")
		s.counts(1, 2)
		s.answers <- struct{}{}
		synctest.Wait()
	})
}

// TestWakeUpsInVainGrowRare: a waiter without a place in the queue, which is refused again
// and again, as after a Break, is woken ever more seldom.
func TestWakeUpsInVainGrowRare(t *testing.T) {
	onSlow(t, func(s *scene) {
		r := NewRinging(s.Store, deaf{})
		a := exclusive("id")
		a.Key = "other" // has no row
		woke := make(chan driver.Grant, 1)
		stop, err := r.Watch(s.Context(), a.Claim, func(g driver.Grant) { woke <- g })
		if err != nil {
			s.Fatal(err)
		}
		r.Acquire(s.Context(), a)
		wakes := 0
		for end := time.After(10 * time.Second); end != nil; {
			select {
			case <-woke:
				wakes++
				r.Acquire(s.Context(), a)
			case <-end:
				end = nil
			}
		}
		if most := 60; wakes > most || wakes < 10 {
			s.Errorf("the waiter was woken %d times in 10s, want 10 to %d", wakes, most)
		}
		stop()
		r.looking.Wait()
	})
}

// A ward is a table in which the claims of a book hold and wait. It is also a bell, which
// counts the rings and the waits.
type ward struct {
	held
	deaf
	book  *book.Book
	rings int
	waits int
	rung  chan struct{} // closed when the bell of the other process rings
}

func (w *ward) To() string   { return "ours" }
func (w *ward) Ring()        { w.rings++ }
func (w *ward) Close() error { return nil }

func (w *ward) Query(ctx context.Context, st Statement, each func(Scan) error) error {
	if !strings.HasPrefix(st.Text, "SELECT") { // to take a free key
		return nil
	}
	return each(func(dest ...any) error {
		if len(dest) == 10 { // to load
			return w.row(w.book, dest)
		}
		r := row{version: 1, format: format}
		err := r.fill(w.book, at(0).Now)
		*dest[0].(*int64), *dest[1].(*string) = micros(at(0).Now), st.Args[0].(string)
		for i, n := range []int64{r.version, r.format, r.fence} {
			*dest[2+i].(*int64) = n
		}
		*dest[5].(*string), *dest[6].(*int64), *dest[7].(*int64), *dest[8].(*string) = r.sole, r.since, r.until, r.claims
		return err
	})
}

func (w *ward) Exec(context.Context, Statement) (Result, error) { return Result{Rows: 1}, nil }

func (w *ward) Wait(ctx context.Context, bell string, name any, version int64) (Heard, error) {
	w.waits++
	select {
	case <-w.rung:
		return Rang, nil
	case <-ctx.Done():
		return Nothing, ctx.Err()
	}
}

// newWard returns a ward in which a claim of a different process holds, and a waiter waits.
func newWard(t *testing.T, holder, waiter string) (*ward, *Ringing) {
	w := &ward{book: new(book.Book), rung: make(chan struct{})}
	for _, claim := range []struct{ id, session string }{{"holder", holder}, {"waiter", waiter}} {
		if _, err := w.book.Acquire(at(0), exclusive(claim.id), claim.session); err != nil {
			t.Fatal(err)
		}
	}
	return w, NewRinging(must.Get(New(w, Postgres, nil)), w)
}

// TestWaitersShareAWait: a wait that has outlived its waiter serves the next waiter, so ended
// waits do not use up the connections.
func TestWaitersShareAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWard(t, "theirs", "ours")
		defer r.Close()
		woke := make(chan driver.Grant, 1)
		watch := func() (stop func()) {
			stop = must.Get(r.Watch(t.Context(), exclusive("waiter").Claim, func(g driver.Grant) { woke <- g }))
			if g, err := r.Acquire(t.Context(), exclusive("waiter")); g.OK || err != nil {
				t.Errorf("Acquire returned %+v and %v, want a refusal", g, err)
			}
			synctest.Wait()
			return stop
		}
		for range 3 {
			watch()()
			synctest.Wait()
		}
		defer watch()()
		if w.waits != 1 {
			t.Errorf("four waiters, one after the other, began %d waits, want 1", w.waits)
		}
		w.book.Held = nil
		close(w.rung)
		if g := <-woke; g != (driver.Grant{}) {
			t.Errorf("the ring woke the waiter with %+v, want no grant: nothing of it was written for sure", g)
		}
	})
}

// TestRingsForOthers: a release rings for claims of other processes, with a bell of their own
// or without.
func TestRingsForOthers(t *testing.T) {
	for waiter, want := range map[string]int{"ours": 0, "theirs": 1, "": 1} {
		w, r := newWard(t, "ours", waiter)
		r.freed("key", w.book)
		if w.rings != want {
			t.Errorf("a release before a waiter with the bell %q rang %d times, want %d", waiter, w.rings, want)
		}
		r.Close()
	}
}
