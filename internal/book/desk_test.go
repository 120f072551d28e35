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

// An Acquire that itself brings about its grant needs no push beside it.
