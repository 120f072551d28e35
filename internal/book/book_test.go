package book

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func TestAskingTwiceIsAskingOnce(t *testing.T) {
	d := &desk{T: t}
	first := d.granted(0, span(writer("a"), 8))
	again := d.granted(5*sec, writer("a"))
	if first.Fence != again.Fence || again.Span != 8 || again.TTL != 10*sec {
		t.Errorf("asking again gave %+v after %+v, want the same fence and span and a full TTL", again, first)
	}
	d.refused(14*sec, try(writer("b"))) // The second asking made it last.
	d.granted(15*sec, try(writer("b")))
}

func TestWeights(t *testing.T) {
	tests := []struct {
		name    string
		held    []driver.Ask
		ask     driver.Ask
		granted bool
	}{
		{"writer alone", nil, writer("x"), true},
		{"writer after writer", []driver.Ask{writer("a")}, writer("x"), false},
		{"reader after writer", []driver.Ask{writer("a")}, reader("x"), false},
		{"slot after writer", []driver.Ask{writer("a")}, slot("x", 5), false},
		{"writer after reader", []driver.Ask{reader("a")}, writer("x"), false},
		{"reader after readers", []driver.Ask{reader("a"), reader("b")}, reader("x"), true},
		{"last slot", []driver.Ask{slot("a", 3), slot("b", 3)}, slot("x", 3), true},
		{"no slot left", []driver.Ask{slot("a", 3), slot("b", 3), slot("c", 3)}, slot("x", 3), false},
		{"smaller limit", []driver.Ask{slot("a", 3), slot("b", 3)}, slot("x", 2), false},
		{"reader beside slots", []driver.Ask{slot("a", 1)}, reader("x"), true},
		{"heavy slot", []driver.Ask{slot("a", 3)}, driver.Ask{Claim: driver.Claim{ID: "x", Weight: 3, Limit: 3, TTL: sec}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &desk{T: t}
			for _, a := range test.held {
				d.granted(0, a)
			}
			if g := d.acquire(0, test.ask); g.OK != test.granted {
				t.Errorf("granted: %v, want %v", g.OK, test.granted)
			}
		})
	}
}

func TestNonsenseIsInvalid(t *testing.T) {
	heavy := slot("x", 2)
	heavy.Weight = 3
	light := slot("x", 2)
	light.Weight = 0
	wide := slot("x", driver.MaxWeight+1)
	for _, a := range []driver.Ask{heavy, light, wide, lasting(writer("x"), 0), lasting(writer("x"), -sec)} {
		d := &desk{T: t}
		_, err := d.Acquire(at(0), a, "")
		d.is(err, driver.ErrInvalid)
		d.shows(0, "|")
	}
}

func TestRenew(t *testing.T) {
	d := &desk{T: t}
	d.is(d.renew(0, writer("a")), driver.ErrLost)
	d.shows(0, "|") // It creates nothing,

	d.granted(0, writer("a"))
	d.is(d.renew(9*sec, lasting(writer("a"), 2*sec)), nil)
	d.refused(11*sec-1, try(writer("x")))
	d.is(d.renew(11*sec, writer("a")), driver.ErrLost)
	d.shows(11*sec, "|") // revives nothing,

	d.granted(11*sec, writer("b"))
	d.refused(11*sec, writer("c"))
	d.is(d.renew(13*sec, writer("c")), driver.ErrLost)
	d.refused(14*sec, try(writer("x")))
	d.shows(14*sec, "b|") // and keeps no place in the queue.
}

func TestLeave(t *testing.T) {
	d := &desk{T: t}
	if _, err := d.Acquire(at(0), writer("a"), "session"); err != nil {
		t.Fatal(err)
	}
	d.is(d.Renew(at(1*sec), leave(lasting(writer("a"), 2*sec))), nil)
	d.Prune(at(1*sec), func(string) bool { return false })
	d.is(d.renew(2*sec, writer("a")), nil) // It was on its way.
	d.is(d.Renew(at(2*sec), leave(lasting(writer("a"), 2*sec))), nil)
	if g := d.granted(2*sec, writer("a")); g.TTL != sec {
		t.Errorf("granted for %v after it left, want the 1s that it still stands", g.TTL)
	}
	d.refused(3*sec-1, try(writer("x")))
	d.granted(3*sec, try(writer("x")))
}

func TestRelease(t *testing.T) {
	d := &desk{T: t}
	d.is(d.Release(at(0), end(writer("a"))), driver.ErrLost)
	d.granted(0, writer("a"))
	d.is(d.Release(at(0), end(writer("b"))), driver.ErrLost)
	d.shows(0, "a|")
	d.release(0, writer("a"))
	d.is(d.Release(at(0), end(writer("a"))), driver.ErrLost)

	d.granted(0, writer("b"))
	d.is(d.Release(at(10*sec), end(writer("b"))), driver.ErrLost) // It has run out.
}

func TestLateAcquire(t *testing.T) {
	d := &desk{T: t}
	d.is(d.Release(at(0), late(writer("a"))), driver.ErrLost)
	d.refused(0, writer("a"))
	d.shows(0, "|")
	d.granted(1*sec, writer("b"))
	d.refused(2*sec, writer("a"))
	d.shows(2*sec, "b|") // It is not queued either.

	d.is(d.Release(at(2*sec), late(writer("b"))), nil)
	if g := d.refused(12*sec-1, writer("b")); g.Left != 1 {
		t.Errorf("Retry is %v, want the 1ns that the tombstone stays", g.Left)
	}
	d.granted(12*sec, writer("b"))

	d.release(12*sec, writer("b"))
	d.granted(12*sec, writer("b")) // Without Late there is no tombstone.
}

func TestBreak(t *testing.T) {
	d := &desk{T: t}
	long := lasting(writer("a"), 60*sec)
	d.granted(0, long)
	d.refused(0, writer("b"))
	d.refused(0, writer("c"))
	_, err := d.Break(at(0), "a")
	d.is(err, driver.ErrLost) // A claim's own id opens nothing.

	broken, err := d.Break(at(1*sec), driver.PublicID("a"))
	d.is(err, nil)
	if broken.ID != "a" || broken.Until != 60*sec {
		t.Errorf("broke %+v, want a", broken)
	}
	d.pushed("b")
	d.is(d.renew(1*sec, long), driver.ErrBroken)
	d.is(d.Release(at(1*sec), end(long)), driver.ErrBroken)
	d.refused(1*sec, long)

	if _, err = d.Break(at(1*sec), driver.PublicID("c")); err != nil { // in the queue
		t.Fatal(err)
	}
	d.refused(1*sec, writer("c"))
	d.shows(1*sec, "b|")
	if _, err := d.Break(at(1*sec), driver.PublicID("a")); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the second break says %v, want ErrLost", err)
	}
	// a's owner may sleep until its lease would have ended.
	d.is(d.renew(60*sec-1, long), driver.ErrBroken)
	err = d.renew(60*sec, long)
	if d.is(err, driver.ErrLost); errors.Is(err, driver.ErrBroken) {
		t.Error("it is remembered as broken for too long")
	}
}

func TestPrune(t *testing.T) {
	d := &desk{T: t}
	for id, session := range map[string]string{"a": "dead", "b": "alive", "c": ""} {
		if _, err := d.Acquire(at(0), reader(id), session); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ id, session string }{{"w", "dead"}, {"x", "alive"}} {
		if _, err := d.Acquire(at(0), writer(c.id), c.session); err != nil {
			t.Fatal(err)
		}
	}
	d.refused(0, reader("r"))
	alive := func(session string) bool { return session == "alive" }
	d.Prune(at(0), alive)
	d.pushed()
	d.release(0, reader("b"))
	d.release(0, reader("c"))
	d.pushed("x")
	d.Prune(at(0), func(string) bool { return false })
	d.pushed("r")
	d.shows(0, "r|")
}

// A clock that ticks in seconds is read by up to a second too early. A claim stamped by
// this clock stands so much longer, and no owner is promised the difference.
func TestGrain(t *testing.T) {
	var b Book
	coarse := func(now time.Duration) Moment {
		m := at(now)
		m.Grain = sec
		return m
	}
	for range 2 { // taken, and asked for again
		g, err := b.Acquire(coarse(0), writer("a"), "")
		if err != nil || !g.OK || g.TTL != 10*sec {
			t.Fatalf("got %+v and %v, want a grant for 10s", g, err)
		}
	}
	for _, now := range []time.Duration{0, 10 * sec, 11*sec - 1} {
		g, err := b.Acquire(coarse(now), try(writer("b")), "")
		if want := max(10*sec-now, 0); err != nil || g.OK || g.Left != want || g.Holder.Left != want {
			t.Errorf("at %v: got %+v and %v, want a refusal for another %v", now, g, err, want)
		}
	}
	if g, err := b.Acquire(coarse(11*sec), writer("b"), ""); err != nil || !g.OK {
		t.Errorf("got %+v and %v, want a grant", g, err)
	}
	if err := b.Release(coarse(11*sec), late(writer("b"))); err != nil {
		t.Error(err)
	}
	if g, err := b.Acquire(coarse(22*sec-1), writer("b"), ""); err != nil || g.OK {
		t.Errorf("got %+v and %v, want its late release remembered", g, err)
	}

	// Of what is left when its owner has gone, the grain is nobody's.
	b.Acquire(coarse(30*sec), writer("c"), "")
	if err := b.Renew(coarse(30*sec), leave(lasting(writer("c"), sec))); err != nil {
		t.Error(err)
	}
	for now, want := range map[time.Duration]time.Duration{30 * sec: sec, 31*sec + sec/2: 1} {
		if g, err := b.Acquire(coarse(now), writer("c"), ""); err != nil || !g.OK || g.TTL != want {
			t.Errorf("at %v: got %+v and %v, want a grant for %v", now, g, err, want)
		}
	}
}
