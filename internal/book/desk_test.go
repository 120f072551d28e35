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

func writer(id string) driver.Ask {
	c := driver.Claim{Key: "k", ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: 10 * sec}
	return driver.Ask{Claim: c, Wait: true, Span: 1}
}

func reader(id string) driver.Ask {
	c := writer(id)
	c.Weight = 1
	return c
}

func slot(id string, limit int64) driver.Ask {
	c := reader(id)
	c.Limit = limit
	return c
}

func try(a driver.Ask) driver.Ask { a.Wait = false; return a }

func span(a driver.Ask, n int) driver.Ask { a.Span = n; return a }

func lasting(a driver.Ask, ttl time.Duration) driver.Ask { a.TTL = ttl; return a }

// The later calls for a claim.
func renewal(a driver.Ask) driver.Renewal { return driver.Renewal{Claim: a.Claim} }
func leave(a driver.Ask) driver.Renewal   { return driver.Renewal{Claim: a.Claim, Leave: true} }
func end(a driver.Ask) driver.Release     { return driver.Release{Claim: a.Claim} }
func late(a driver.Ask) driver.Release    { return driver.Release{Claim: a.Claim, Late: true} }

// desk is a Book with the checks that most tests repeat.
type desk struct {
	*testing.T
	Book
}

func (d *desk) acquire(now time.Duration, a driver.Ask) driver.Grant {
	d.Helper()
	g, err := d.Acquire(at(now), a, "")
	if err != nil {
		d.Fatalf("at %v: Acquire(%s): %v", now, a.ID, err)
	}
	return g
}

func (d *desk) granted(now time.Duration, a driver.Ask) driver.Grant {
	d.Helper()
	g := d.acquire(now, a)
	if !g.OK {
		d.Fatalf("at %v: %s was refused, want it granted", now, a.ID)
	}
	return g
}

func (d *desk) refused(now time.Duration, a driver.Ask) driver.Grant {
	d.Helper()
	g := d.acquire(now, a)
	if g.OK {
		d.Fatalf("at %v: %s was granted, want it refused", now, a.ID)
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

func (d *desk) renew(now time.Duration, a driver.Ask) error { return d.Renew(at(now), renewal(a)) }

func (d *desk) release(now time.Duration, a driver.Ask) {
	d.Helper()
	d.is(d.Release(at(now), end(a)), nil)
}

// shown lists the holders, then those in the queue after a bar.
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
