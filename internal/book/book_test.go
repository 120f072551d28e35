package book

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const sec = time.Second

// The wall clock of the tests, at Moment.Now 0.
const epoch = 1_700_000_000_000_000

func at(now time.Duration) Moment { return Moment{Now: now, Wall: epoch + now.Microseconds()} }

func writer(id string) driver.Claim {
	return driver.Claim{Key: "k", ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: 10 * sec, Wait: true, Span: 1}
}

func reader(id string) driver.Claim {
	c := writer(id)
	c.Weight = 1
	return c
}

func slot(id string, limit int64) driver.Claim {
	c := reader(id)
	c.Limit = limit
	return c
}

func try(c driver.Claim) driver.Claim   { c.Wait = false; return c }
func late(c driver.Claim) driver.Claim  { c.Late = true; return c }
func leave(c driver.Claim) driver.Claim { c.Leave = true; return c }

func span(c driver.Claim, n int) driver.Claim { c.Span = n; return c }

func lasting(c driver.Claim, ttl time.Duration) driver.Claim { c.TTL = ttl; return c }

// desk is a Book with the checks that most tests repeat.
type desk struct {
	*testing.T
	Book
}

func (d *desk) acquire(now time.Duration, c driver.Claim) driver.Grant {
	d.Helper()
	g, err := d.Acquire(at(now), c, "")
	if err != nil {
		d.Fatalf("at %v: Acquire(%s): %v", now, c.ID, err)
	}
	return g
}

func (d *desk) granted(now time.Duration, c driver.Claim) driver.Grant {
	d.Helper()
	g := d.acquire(now, c)
	if !g.OK {
		d.Fatalf("at %v: %s was refused, want it granted", now, c.ID)
	}
	return g
}

func (d *desk) refused(now time.Duration, c driver.Claim) driver.Grant {
	d.Helper()
	g := d.acquire(now, c)
	if g.OK {
		d.Fatalf("at %v: %s was granted, want it refused", now, c.ID)
	}
	return g
}

func (d *desk) pushed(want ...string) {
	d.Helper()
	var got []string
	for _, p := range d.Pushed {
		got = append(got, p.ID)
	}
	if !slices.Equal(got, want) {
		d.Fatalf("pushed %q, want %q", got, want)
	}
}

func (d *desk) is(err, want error) {
	d.Helper()
	if !errors.Is(err, want) {
		d.Fatalf("got error %v, want %v", err, want)
	}
}

func (d *desk) release(now time.Duration, c driver.Claim) {
	d.Helper()
	d.is(d.Release(at(now), c), nil)
}

// shown lists the holders, then those in line after a bar.
func (d *desk) shown(now time.Duration) string {
	var held, line []string
	for _, entries := range [][]Entry{d.Held, d.Queue} {
		for _, e := range entries {
			switch {
			case e.Until <= now:
			case e.Fence == 0:
				line = append(line, e.ID)
			default:
				held = append(held, e.ID)
			}
		}
	}
	return strings.Join(held, " ") + "|" + strings.Join(line, " ")
}

func (d *desk) shows(now time.Duration, want string) {
	d.Helper()
	if got := d.shown(now); got != want {
		d.Fatalf("at %v: the book shows %q, want %q", now, got, want)
	}
}

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
		held    []driver.Claim
		ask     driver.Claim
		granted bool
	}{
		{"writer alone", nil, writer("x"), true},
		{"writer after writer", []driver.Claim{writer("a")}, writer("x"), false},
		{"reader after writer", []driver.Claim{writer("a")}, reader("x"), false},
		{"slot after writer", []driver.Claim{writer("a")}, slot("x", 5), false},
		{"writer after reader", []driver.Claim{reader("a")}, writer("x"), false},
		{"reader after readers", []driver.Claim{reader("a"), reader("b")}, reader("x"), true},
		{"last slot", []driver.Claim{slot("a", 3), slot("b", 3)}, slot("x", 3), true},
		{"no slot left", []driver.Claim{slot("a", 3), slot("b", 3), slot("c", 3)}, slot("x", 3), false},
		{"smaller limit", []driver.Claim{slot("a", 3), slot("b", 3)}, slot("x", 2), false},
		{"reader beside slots", []driver.Claim{slot("a", 1)}, reader("x"), true},
		{"heavy slot", []driver.Claim{slot("a", 3)}, driver.Claim{ID: "x", Weight: 3, Limit: 3, TTL: sec}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &desk{T: t}
			for _, c := range test.held {
				d.granted(0, c)
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
	for _, c := range []driver.Claim{heavy, light, wide, lasting(writer("x"), 0), lasting(writer("x"), -sec)} {
		d := &desk{T: t}
		_, err := d.Acquire(at(0), c, "")
		d.is(err, driver.ErrInvalid)
		d.shows(0, "|")
	}
}

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
	d.granted(0, reader("a")) // Who holds already passes nobody.
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
	d.is(d.Renew(at(4*sec), writer("a")), driver.ErrLost)
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
		d.is(d.Renew(at(7*sec), writer("b")), driver.ErrLost)
	})
	t.Run("confirmed by renewal", func(t *testing.T) {
		d := &desk{T: t, Book: d.copy()}
		d.is(d.Renew(at(6*sec), writer("b")), nil)
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

func TestRenew(t *testing.T) {
	d := &desk{T: t}
	d.is(d.Renew(at(0), writer("a")), driver.ErrLost)
	d.shows(0, "|") // It creates nothing,

	d.granted(0, writer("a"))
	d.is(d.Renew(at(9*sec), lasting(writer("a"), 2*sec)), nil)
	d.refused(11*sec-1, try(writer("x")))
	d.is(d.Renew(at(11*sec), writer("a")), driver.ErrLost)
	d.shows(11*sec, "|") // revives nothing,

	d.granted(11*sec, writer("b"))
	d.refused(11*sec, writer("c"))
	d.is(d.Renew(at(13*sec), writer("c")), driver.ErrLost)
	d.refused(14*sec, try(writer("x")))
	d.shows(14*sec, "b|") // and keeps no place in line.
}

func TestLeave(t *testing.T) {
	d := &desk{T: t}
	if _, err := d.Acquire(at(0), writer("a"), "session"); err != nil {
		t.Fatal(err)
	}
	d.is(d.Renew(at(1*sec), leave(lasting(writer("a"), 2*sec))), nil)
	d.Prune(at(1*sec), func(string) bool { return false })
	d.refused(3*sec-1, try(writer("x")))
	d.granted(3*sec, try(writer("x")))
}

func TestRelease(t *testing.T) {
	d := &desk{T: t}
	d.is(d.Release(at(0), writer("a")), driver.ErrLost)
	d.granted(0, writer("a"))
	d.is(d.Release(at(0), writer("b")), driver.ErrLost)
	d.shows(0, "a|")
	d.release(0, writer("a"))
	d.is(d.Release(at(0), writer("a")), driver.ErrLost)

	d.granted(0, writer("b"))
	d.is(d.Release(at(10*sec), writer("b")), driver.ErrLost) // It has run out.
}

func TestLateAcquire(t *testing.T) {
	d := &desk{T: t}
	d.is(d.Release(at(0), late(writer("a"))), driver.ErrLost)
	d.refused(0, writer("a"))
	d.shows(0, "|")
	d.granted(1*sec, writer("b"))
	d.refused(2*sec, writer("a"))
	d.shows(2*sec, "b|") // It is not queued either.

	d.release(2*sec, late(writer("b")))
	if g := d.refused(12*sec-1, writer("b")); g.Retry != 1 {
		t.Errorf("Retry is %v, want the 1ns that the tombstone stays", g.Retry)
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

	id, err := d.Break(at(1*sec), driver.PublicID("a"))
	d.is(err, nil)
	if id != "a" {
		t.Errorf("broke %q, want a", id)
	}
	d.pushed("b")
	d.is(d.Renew(at(1*sec), long), driver.ErrBroken)
	d.is(d.Release(at(1*sec), long), driver.ErrBroken)
	d.refused(1*sec, long)

	if _, err = d.Break(at(1*sec), driver.PublicID("c")); err != nil { // in line
		t.Fatal(err)
	}
	d.refused(1*sec, writer("c"))
	d.shows(1*sec, "b|")
	if _, err := d.Break(at(1*sec), driver.PublicID("a")); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the second break says %v, want ErrLost", err)
	}
	// a's owner may sleep until its lease would have ended.
	d.is(d.Renew(at(60*sec-1), long), driver.ErrBroken)
	err = d.Renew(at(60*sec), long)
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

func TestTokensGrow(t *testing.T) {
	d := &desk{T: t}
	a := d.granted(0, span(writer("a"), 256))
	if a.Fence != epoch || a.Span != 256 || d.Floor != epoch+255 {
		t.Fatalf("first grant %+v with floor %d, want the wall clock's microseconds", a, d.Floor)
	}
	d.release(0, writer("a"))
	b := d.granted(0, span(writer("b"), 300))
	if b.Fence != epoch+256 || b.Span != 256 {
		t.Errorf("granted %+v, want the next token after the span, and 256 of them at most", b)
	}
	d.release(0, writer("b"))

	back := Moment{Now: sec, Wall: 5}
	c, err := d.Acquire(back, span(writer("c"), 0), "")
	if err != nil || c.Fence != b.Fence+256 || c.Span != 1 {
		t.Errorf("granted %+v, %v after the clock went back, want the next token", c, err)
	}
	d.release(sec, writer("c"))
	ahead := d.granted(2*sec, writer("d"))
	if ahead.Fence != epoch+2_000_000 {
		t.Errorf("granted %d, want the wall clock's %d", ahead.Fence, epoch+2_000_000)
	}
}

func TestReadersShareATokenPerPhase(t *testing.T) {
	d := &desk{T: t}
	a := d.granted(0, span(reader("a"), 9))
	b := d.granted(1*sec, reader("b"))
	if a.Fence != b.Fence || a.Span != 1 {
		t.Errorf("readers of one phase got %+v and %+v, want one token", a, b)
	}
	d.refused(1*sec, writer("w"))
	d.refused(1*sec, reader("c"))
	d.refused(1*sec, reader("e"))
	d.release(2*sec, reader("a"))
	d.release(2*sec, reader("b"))
	w := d.Pushed[0].Grant
	d.release(2*sec, writer("w"))
	c, e := d.Pushed[0].Grant, d.Pushed[1].Grant
	if !(b.Fence < w.Fence && w.Fence < c.Fence && c.Fence == e.Fence) {
		t.Errorf("tokens %d, %d, %d, %d, want reader < writer < readers of the next phase", b.Fence, w.Fence, c.Fence, e.Fence)
	}
	s := d.granted(3*sec, slot("s", 5))
	f := d.granted(3*sec, reader("f"))
	if !(c.Fence < s.Fence && s.Fence < f.Fence) {
		t.Errorf("tokens %d, %d, %d, want a slot to end the phase", c.Fence, s.Fence, f.Fence)
	}
	for _, id := range []string{"c", "e", "f"} {
		d.release(3*sec, reader(id))
	}
	if g := d.granted(3*sec, reader("g")); g.Fence <= f.Fence {
		t.Errorf("token %d after %d, want a new phase once all readers have gone", g.Fence, f.Fence)
	}
}

func TestTokensStayBelow2To53(t *testing.T) {
	tests := []struct {
		name  string
		floor uint64
		wall  int64
	}{
		{"floor", 1<<53 - 2, 0},
		{"clock", 0, 1 << 53},
		{"nonsense floor", 1<<64 - 1, epoch},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &desk{T: t, Book: Book{Floor: test.floor}}
			_, err := d.Acquire(Moment{Wall: test.wall}, span(writer("a"), 2), "")
			d.is(err, driver.ErrInvalid)
			d.shows(0, "|")
		})
	}
	d := &desk{T: t, Book: Book{Floor: 1<<53 - 3}}
	held, err := d.Acquire(Moment{}, writer("a"), "")
	if err != nil || held.Fence != 1<<53-2 {
		t.Fatalf("the token before the last: %+v, %v", held, err)
	}
	d.Floor++
	d.refused(0, writer("b"))
	d.granted(0, writer("a")) // Holders keep what they have.
	d.is(d.Release(Moment{}, writer("a")), nil)
	_, err = d.Acquire(Moment{}, writer("b"), "")
	d.is(err, driver.ErrInvalid)
}

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
	if g.Retry != 3*sec || g.Holder != want {
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
