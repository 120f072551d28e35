package book

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/pace"
)

func TestFirstComeFirstServed(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, writer("a"))
	d.refused(0, reader("r1"))
	d.refused(0, reader("r2"))
	d.refused(0, writer("w"))
	d.refused(0, reader("r3"))
	d.refused(0, slot("s1", 2))
	d.shows(0, "a|r1 r2 w r3 s1")

	d.release(1*sec, writer("a"))
	d.pushed("r1", "r2") // All readers up to the next writer.
	d.shows(1*sec, "r1 r2|w r3 s1")
	d.release(1*sec, reader("r1"))
	d.pushed()
	d.release(1*sec, reader("r2"))
	d.pushed("w")
	d.release(1*sec, writer("w"))
	d.pushed("r3", "s1")
	d.shows(1*sec, "r3 s1|")
}

func TestNobodyPassesTheLine(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, reader("a"))
	d.refused(0, writer("w"))
	d.refused(0, try(reader("b"))) // It would fit beside a, but w was first.
	d.refused(0, reader("c"))
	d.shows(0, "a|w c")
	d.granted(0, reader("a")) // A holder that asks again passes nobody.
}

// A place lasts the longer the more claims are ahead, up to four times as long or the TTL, and
// the refusal says so.
func TestKeptByPlace(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, writer("a"))
	for i := range 4 * Crowd {
		want := min(time.Duration(1+i/Crowd)*3*sec, 10*sec)
		g := d.refused(0, writer(fmt.Sprint("b", i)))
		if g.Kept != want && (i >= Crowd || g.Kept != 0) {
			t.Errorf("with %d ahead in the queue, a claim is kept for %v, want %v", i, g.Kept, want)
		}
	}
	for _, step := range []struct {
		at   time.Duration
		left int
	}{{2999 * time.Millisecond, 32}, {3 * sec, 24}, {6 * sec, 16}, {9 * sec, 8}, {9999 * time.Millisecond, 8}} {
		d.refused(step.at, try(writer("c")))
		if len(d.Queue) != step.left {
			t.Errorf("at %v, %d of the silent claims keep their places, want %d", step.at, len(d.Queue), step.left)
		}
	}
}

// Places far back last longer, but dead waiters do not add up.
func TestDeadWaiters(t *testing.T) {
	hour := func(id string) driver.Ask { return lasting(writer(id), time.Hour) }
	for _, dead := range []int{1, 7, 40, 300} {
		d := &desk{T: t}
		d.granted(0, hour("holder"))
		for i := range dead {
			d.refused(0, hour(fmt.Sprint("dead", i)))
		}
		last := d.refused(0, hour("last"))
		d.release(0, hour("holder"))
		now := time.Duration(0)
		for !last.OK {
			now += max(last.Kept, 3*sec) / 3
			last = d.acquire(now, hour("last"))
		}
		if now > 16*sec {
			t.Errorf("behind %d dead waiters a claim waits for %v", dead, now)
		}
	}
}

// A polling waiter is asked for longer pauses, the more waiters are ahead.
func TestPauseByPlace(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, writer("a"))
	for i, id := range []string{"b", "c", "d"} {
		if g := d.refused(0, writer(id)); g.Pause != time.Duration(i)*pace.First {
			t.Errorf("%s, with %d before it in the queue, is asked for a pause of %v", id, i, g.Pause)
		}
	}
	d.release(1*sec, writer("a"))
	if g := d.refused(1*sec, writer("d")); g.Pause != pace.First {
		t.Errorf("with one before it in the queue, d is asked for a pause of %v", g.Pause)
	}
	if g := d.refused(1*sec, try(writer("e"))); g.Pause != 0 {
		t.Errorf("who does not wait is asked for a pause of %v", g.Pause)
	}
}

func TestTryLeavesNoPlace(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, writer("a"))
	d.refused(0, try(writer("b")))
	d.shows(0, "a|")
}

func TestWaiterKeepsItsPlaceByAsking(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, lasting(writer("a"), 60*sec))
	d.refused(0, writer("b"))
	d.refused(1*sec, writer("c"))
	d.refused(2*sec, span(writer("b"), 5))
	d.shows(3*sec, "a|b c")
	d.shows(4*sec, "a|b") // c has not asked for 3 s.
	d.refused(4*sec, writer("c"))
	d.shows(4*sec, "a|b c") // It starts again at the end.

	d.release(4*sec, writer("a"))
	d.pushed("b")
	if g := d.Pushed[0].Grant; g.Span != 5 {
		t.Errorf("granted a span of %d, want the 5 of the last asking", g.Span)
	}
}

func TestDeadWaiterAtTheHead(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, slot("a", 3))
	heavy := slot("b", 3)
	heavy.Weight = 3
	d.refused(0, heavy)
	d.refused(1*sec, slot("c", 3)) // It fits, but b is before it.
	d.refused(2*sec, try(slot("x", 3)))
	d.pushed()
	d.refused(3*sec, try(slot("x", 2))) // b is dead: c gets in, and fills the two.
	d.pushed("c")
	d.shows(3*sec, "a c|")
}

func TestCancelledHeadLetsOthersIn(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, reader("a"))
	d.refused(0, writer("w"))
	d.refused(0, reader("b"))
	d.refused(0, reader("c"))
	d.release(0, writer("w"))
	d.pushed("b", "c")
}

func TestExpiryLetsTheNextIn(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, lasting(writer("a"), 4*sec))
	d.refused(2*sec, writer("b"))
	d.refused(3*sec, writer("c"))
	d.is(d.renew(4*sec, writer("a")), driver.ErrLost)
	d.pushed("b")
	d.shows(4*sec, "b|c")
}

func TestPushedGrant(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, writer("a"))
	d.refused(0, writer("b"))
	d.refused(2*sec, writer("b"))
	d.release(4*sec, writer("a"))
	d.pushed("b")
	g := d.Pushed[0].Grant
	if !g.OK || g.Fence == 0 || g.Span != 1 {
		t.Errorf("pushed %+v, want a grant with a fence and a span", g)
	}
	if g.TTL != 2*sec+3*sec {
		t.Errorf("pushed a TTL of %v, want the 2 s since it last asked and the 3 s it stands", g.TTL)
	}

	t.Run("unconfirmed", func(t *testing.T) {
		d := &desk{T: t, Book: d.copy()}
		d.refused(7*sec-1, try(writer("x")))
		d.granted(7*sec, try(writer("x")))
		d.is(d.renew(7*sec, writer("b")), driver.ErrLost)
	})
	t.Run("confirmed by renewal", func(t *testing.T) {
		d := &desk{T: t, Book: d.copy()}
		d.is(d.renew(6*sec, writer("b")), nil)
		d.refused(16*sec-1, try(writer("x")))
		d.granted(16*sec, try(writer("x")))
	})
	t.Run("found by asking", func(t *testing.T) {
		d := &desk{T: t, Book: d.copy()}
		found := d.granted(6*sec, writer("b"))
		if found.Fence != g.Fence || found.TTL != 10*sec {
			t.Errorf("found %+v after %+v was pushed, want the same fence and a full TTL", found, g)
		}
		d.refused(16*sec-1, try(writer("x")))
	})
	t.Run("the clock was set back", func(t *testing.T) {
		d := &desk{T: t}
		d.granted(100*sec, writer("a"))
		d.refused(100*sec, writer("b"))
		d.release(10*sec, writer("a"))
		if g := d.Pushed[0].Grant; g.TTL != 3*sec {
			t.Errorf("pushed a TTL of %v, want the 3 s that it stands", g.TTL)
		}
		if held := d.Held[0]; held.Until-held.Asked != 3*sec {
			t.Errorf("it stands for %v from when it asked, want 3 s", held.Until-held.Asked)
		}
	})
	t.Run("short TTL", func(t *testing.T) {
		d := &desk{T: t}
		d.granted(0, writer("a"))
		d.refused(0, lasting(writer("b"), sec))
		d.release(sec/2, writer("a"))
		if g := d.Pushed[0].Grant; g.TTL != sec/2+sec {
			t.Errorf("pushed a TTL of %v, want 1.5s", g.TTL)
		}
		d.granted(sec/2+sec, try(writer("x")))
	})
}

func (d *desk) copy() Book {
	b := d.Book
	b.Held, b.Queue, b.Tombs = slices.Clone(b.Held), slices.Clone(b.Queue), slices.Clone(b.Tombs)
	b.Pushed = nil
	return b
}

// An Acquire that itself brings about its grant needs no push beside it.
func TestNoPushToWhoAsks(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, lasting(writer("a"), 2*sec))
	d.refused(1*sec, reader("b"))
	d.refused(1*sec, reader("c"))
	d.granted(2*sec, reader("b"))
	d.pushed("c")
}

// A waiter may sleep until the claim of Before ends: without that end, the waiter is not
// granted.
func TestBefore(t *testing.T) {
	d := &desk{T: t}
	d.granted(0, reader("r1"))
	d.granted(0, reader("r2"))
	for _, a := range []driver.Ask{writer("w1"), reader("r3"), reader("r4"), writer("w2"), slot("s", 2)} {
		d.refused(0, a)
	}
	d.before(map[string]string{"w1": "r2", "r3": "w1", "r4": "w1", "w2": "r4", "s": "w2", "r1": "", "none": ""})

	d = &desk{T: t}
	d.granted(0, slot("s1", 2))
	d.granted(0, slot("s2", 2))
	d.refused(0, slot("s3", 2))
	d.refused(0, slot("s4", 2))
	d.before(map[string]string{"s3": "", "s4": ""}) // Either end lets s3 in.
}

func (d *desk) before(want map[string]string) {
	d.Helper()
	for id, before := range want {
		got := ""
		if e := d.Before(id); e != nil {
			got = e.ID
		}
		if got != before {
			d.Errorf("%q has to end before %s is granted, want %q", got, id, before)
		}
	}
}
