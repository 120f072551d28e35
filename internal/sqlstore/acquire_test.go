package sqlstore

import (
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
		if e := queued(&b, a.ID); e != nil && e.Until < at(now).Now+a.Alive() {
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
		{at: 700 * time.Millisecond, span: 7, wrote: true},
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
}
