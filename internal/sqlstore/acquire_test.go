package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A place in the queue lasts for Alive after the last request for the claim, also if that
// request was not written, which happens only soon after a written one. The row keeps the time
// of the request that changed the terms.
func TestPlacesAreWrittenSeldom(t *testing.T) {
	holder, waiter := exclusive("holder"), exclusive("waiter")
	holder.TTL, waiter.TTL = time.Hour, 10*time.Second/3
	var b book.Book
	ask := func(one driver.Ask, now time.Duration) (got answer, done change) {
		t.Helper()
		a := asking{Ask: one}
		done, err := a.rule(t.Context(), &got)(at(now), &b)
		if err != nil {
			t.Fatal(err)
		}
		if e := find(b.Queue, a.ID); e != nil && e.Until < at(now).Now+a.Alive() {
			t.Errorf("at %v the place lasts for %v only", now, e.Until-at(now).Now)
		}
		return got, done
	}
	ask(holder, 0)
	written := b
	for _, step := range []struct {
		at           time.Duration
		span         int
		wrote, stays bool
		behind       time.Duration
	}{
		{at: 0, span: 3, wrote: true},
		{at: time.Millisecond, span: 3, behind: time.Millisecond},
		{at: 300 * time.Millisecond, span: 3, behind: 300 * time.Millisecond},
		{at: 400 * time.Millisecond, span: 3, wrote: true, stays: true, behind: 400 * time.Millisecond},
		{at: 700 * time.Millisecond, span: 3, behind: 700 * time.Millisecond},
		{at: 700 * time.Millisecond, span: 7, wrote: true, stays: true},
		{at: 701 * time.Millisecond, span: 7, behind: time.Millisecond},
	} {
		waiter.Span = step.span
		got, done := ask(waiter, step.at)
		if done.keep != step.wrote || done.light != step.wrote || (done.stay != nil) != step.stays || got.behind != step.behind {
			t.Errorf("at %v: %+v and %v, want %+v", step.at, done, got.behind, step)
		}
		if step.wrote {
			written = b
			written.Queue = append([]book.Entry(nil), b.Queue...)
			written.Queue[0].TTL = span(micros(waiter.TTL)) // as the row has it
		}
		b = written
		b.Queue = append([]book.Entry(nil), written.Queue...)
	}

	// The more claims are ahead, the longer a place lasts without a write.
	last := exclusive("last")
	for i := range 255 {
		ask(exclusive(fmt.Sprint("ahead ", i)), 0)
	}
	ask(last, 0)
	for _, step := range []struct {
		at    time.Duration
		wrote bool
	}{{4 * time.Second, false}, {8 * time.Second, false}, {18 * time.Second, true}} {
		had := *find(b.Queue, "last")
		if _, done := ask(last, step.at); done.keep != step.wrote {
			t.Errorf("behind 256 claims, a request after %v: %+v, want a write: %v", step.at, done, step.wrote)
		}
		*find(b.Queue, "last") = had
	}

	// A reader was granted the key, has never confirmed the grant, and asks again after the
	// end of the grant. The reader has no place that could be written anew.
	reader := func(id string) driver.Ask { return weighing(exclusive(id), 1, driver.MaxWeight) }
	b = book.Book{}
	if err := acquire(reader("one"), reader("two"), exclusive("writer"))(&b); err != nil {
		t.Fatal(err)
	}
	b.Held[1].Until = at(time.Second).Now
	if got, done := ask(reader("two"), time.Second); !got.queued || !done.keep || done.stay != nil {
		t.Errorf("%+v and %+v of a reader whose grant has ended", got, done)
	}
}

// A claim that holds, and asks again on the same terms, changes its times alone.
func TestExtended(t *testing.T) {
	var b book.Book
	ask := func(a driver.Ask) (done change) {
		t.Helper()
		done, err := (&asking{Ask: a}).rule(t.Context(), new(answer))(at(time.Second), &b)
		if err != nil || !done.keep {
			t.Errorf("%+v, %v", done, err)
		}
		return done
	}
	holder := exclusive("holder")
	if done := ask(holder); done.extend != nil {
		t.Error("a new claim was extended")
	}
	if done := ask(holder); done.extend == nil || done.light {
		t.Errorf("%+v of a claim that holds", done)
	}
	longer := holder
	longer.TTL *= 2
	if done := ask(longer); done.extend != nil {
		t.Error("a claim with a different TTL was extended")
	}
	b.Held[0].Left = true
	if done := ask(longer); done.extend != nil {
		t.Error("a claim whose owner has left was extended")
	}
}
