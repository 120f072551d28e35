package sqlstore

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A place in the queue lasts for Alive after the last request for the claim, also if that
// request was not written, which happens only soon after a written one.
func TestPlacesAreWrittenSeldom(t *testing.T) {
	holder, waiter := exclusive("holder"), exclusive("waiter")
	holder.TTL = time.Hour
	var b book.Book
	watched := false
	ask := func(one driver.Ask, now time.Duration) (wrote bool) {
		t.Helper()
		a := asking{Ask: one, watched: watched}
		done, err := a.rule(t.Context(), new(answer))(at(now), &b)
		if err != nil {
			t.Fatal(err)
		}
		if e := queued(&b, a.ID); e != nil && e.Until < at(now).Now+a.Alive() {
			t.Errorf("at %v the place lasts for %v only", now, e.Until-at(now).Now)
		}
		return done.keep
	}
	ask(holder, 0)
	written := b
	for _, step := range []struct {
		at     time.Duration
		change func()
		wrote  bool
	}{
		{at: 0, wrote: true},
		{at: time.Millisecond},
		{at: 300 * time.Millisecond},
		{at: 400 * time.Millisecond, wrote: true},
		{at: 700 * time.Millisecond},
		{at: 700 * time.Millisecond, change: func() { waiter.Span = 7 }, wrote: true},
		{at: 701 * time.Millisecond},
		{at: 701 * time.Millisecond, change: func() { watched = true }, wrote: true},
		{at: 702 * time.Millisecond, wrote: true}, // The grant will count from here.
	} {
		if step.change != nil {
			step.change()
		}
		if got := ask(waiter, step.at); got != step.wrote {
			t.Errorf("at %v it was written: %t, want %t", step.at, got, step.wrote)
		}
		if step.wrote {
			written = b
			written.Queue = append([]book.Entry(nil), b.Queue...)
		}
		b = written
		b.Queue = append([]book.Entry(nil), written.Queue...)
	}
}
