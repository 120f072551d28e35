package book

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

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
		{"floor near its end", 1<<64 - 3, epoch},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &desk{T: t, Book: Book{Floor: test.floor}}
			_, err := d.Acquire(Moment{Wall: test.wall}, span(writer("a"), 2), "")
			d.is(err, driver.ErrInvalid)
			if number := fmt.Sprint(max(test.floor, uint64(test.wall))); err == nil || !strings.Contains(err.Error(), number) {
				t.Errorf("%v, want an error that names %s", err, number)
			}
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
	d.is(d.Release(Moment{}, end(writer("a"))), nil)
	_, err = d.Acquire(Moment{}, writer("b"), "")
	d.is(err, driver.ErrInvalid)
}

func TestTokensAsAskedFor(t *testing.T) {
	d := &desk{T: t}
	ask := func(a driver.Ask, fence uint64) driver.Ask { a.Fence = fence; return a }
	raise := func(a driver.Ask, fence uint64) driver.Renewal {
		return driver.Renewal{Claim: a.Claim, Fence: fence}
	}
	low := d.granted(0, ask(span(writer("low"), 4), 7))
	if low.Fence != epoch {
		t.Errorf("token %d, want the clock's %d, which is above what was asked for", low.Fence, epoch)
	}
	if g := d.granted(0, ask(writer("low"), epoch+100)); g.Fence != low.Fence {
		t.Errorf("asked again, the claim has token %d, want %d still", g.Fence, low.Fence)
	}
	d.is(d.Renew(at(0), raise(writer("low"), epoch+50)), nil)
	d.is(d.Renew(at(0), raise(writer("low"), epoch+20)), nil)
	if g := d.granted(0, writer("low")); g.Fence != epoch+50 || g.Span != 4 || d.Floor != epoch+53 {
		t.Errorf("raised to %+v with floor %d, want token %d and the floor above its span", g, d.Floor, epoch+50)
	}
	d.is(d.Renew(at(0), raise(writer("low"), epoch+driver.MaxLead+100)), driver.ErrInvalid)
	d.is(d.Renew(at(0), raise(writer("stranger"), epoch+900)), driver.ErrLost)
	d.release(0, writer("low"))

	high := d.granted(0, ask(writer("high"), epoch+1000))
	if high.Fence != epoch+1000 {
		t.Errorf("token %d, want the %d that was asked for", high.Fence, epoch+1000)
	}
	d.release(0, writer("high"))
	_, err := d.Acquire(at(0), ask(writer("poison"), epoch+1000+driver.MaxLead+1), "")
	d.is(err, driver.ErrInvalid)
	d.shows(0, "|")

	a := d.granted(0, ask(reader("a"), epoch+2000))
	b := d.granted(0, ask(reader("b"), epoch+3000))
	if a.Fence != epoch+2000 || b.Fence != a.Fence {
		t.Errorf("readers got %d and %d, want both %d", a.Fence, b.Fence, epoch+2000)
	}
	d.is(d.Renew(at(0), raise(reader("b"), epoch+4000)), nil)
	if c := d.granted(0, reader("c")); c.Fence != epoch+4000 {
		t.Errorf("after the phase was raised a reader got %d, want %d", c.Fence, epoch+4000)
	}
	if h := d.granted(0, reader("a")); h.Fence != epoch+4000 || d.Held[0].Fence != h.Fence {
		t.Errorf("after the phase was raised a reader asked again and got %d, and has %d; want %d", h.Fence, d.Held[0].Fence, epoch+4000)
	}
	d.is(d.Renew(at(0), raise(reader("a"), epoch+2500)), nil)
	if e := d.granted(0, reader("e")); e.Fence != epoch+4000 {
		t.Errorf("after a reader was raised to less than its phase another got %d, want %d still", e.Fence, epoch+4000)
	}
	f := d.granted(0, slot("f", 1<<20))
	d.is(d.Renew(at(0), raise(reader("a"), f.Fence)), nil)
	if g := d.granted(0, reader("g")); g.Fence <= f.Fence {
		t.Errorf("a reader that came after a slot with token %d has %d: the phase had ended", f.Fence, g.Fence)
	}
}
