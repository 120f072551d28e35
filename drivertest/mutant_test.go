package drivertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A mutant is a store that does one thing wrong, and the rule that is there to
// find it.
type mutant struct {
	name  string
	rule  string
	spoil func(*ways)
}

var mutants = slices.Concat(claimMutants, endMutants, tokenMutants, raiseMutants, lineMutants, callMutants)

func TestUnbroken(t *testing.T) { Run(t, ledgers(right())) }

// TestMutants checks that the suite finds each mutant by the rule that is meant
// for it.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			w := right()
			m.spoil(&w)
			failures := Check(t, ledgers(w), m.rule)
			if len(failures) != 1 {
				t.Fatalf("a store that %s passes %s", m.name, m.rule)
			}
			t.Log(failures[0])
		})
	}
}

// TestEveryRuleIsBroken checks that no rule is without a mutant: one that
// nothing breaks may be checking nothing.
func TestEveryRuleIsBroken(t *testing.T) {
	for _, r := range rules {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.rule == r.name }) {
			t.Errorf("no mutant breaks %s: %s", r.name, r.words)
		}
	}
}

// before adds what goes wrong before an Acquire.
func (w *ways) before(spoil func(b *book.Book, m *book.Moment, c *driver.Claim)) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, c driver.Claim) (driver.Grant, error) {
		spoil(b, &m, &c)
		return acquire(b, m, c)
	}
}

// after adds what goes wrong after an Acquire.
func (w *ways) after(spoil func(b *book.Book, c driver.Claim, g *driver.Grant) error) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, c driver.Claim) (driver.Grant, error) {
		g, err := acquire(b, m, c)
		if err != nil {
			return g, err
		}
		return g, spoil(b, c, &g)
	}
}

// entered adds what goes wrong with the entry of a claim that has asked.
func (w *ways) entered(spoil func(e *book.Entry, before *book.Entry, m book.Moment)) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, c driver.Claim) (driver.Grant, error) {
		before := clone(entry(b, c.ID))
		g, err := acquire(b, m, c)
		if e := entry(b, c.ID); e != nil {
			spoil(e, before, m)
		}
		return g, err
	}
}

// passing lets the claims that match pass the line.
func (w *ways) passing(match func(driver.Claim) bool) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, c driver.Claim) (driver.Grant, error) {
		if !match(c) {
			return acquire(b, m, c)
		}
		line := b.Queue
		b.Queue = nil
		g, err := acquire(b, m, c)
		b.Queue = append(slices.DeleteFunc(line, func(e book.Entry) bool { return e.ID == c.ID }), b.Queue...)
		return g, err
	}
}

// renewing adds what goes wrong before a Renew.
func (w *ways) renewing(spoil func(b *book.Book, m book.Moment, c *driver.Claim)) {
	renew := w.renew
	w.renew = func(b *book.Book, m book.Moment, c driver.Claim) error {
		spoil(b, m, &c)
		return renew(b, m, c)
	}
}

// renewed adds what goes wrong after a Renew.
func (w *ways) renewed(spoil func(b *book.Book, m book.Moment, c driver.Claim, err error) error) {
	renew := w.renew
	w.renew = func(b *book.Book, m book.Moment, c driver.Claim) error {
		return spoil(b, m, c, renew(b, m, c))
	}
}

// releasing adds what goes wrong before a Release.
func (w *ways) releasing(spoil func(b *book.Book, c *driver.Claim)) {
	release := w.release
	w.release = func(b *book.Book, m book.Moment, c driver.Claim) error {
		spoil(b, &c)
		return release(b, m, c)
	}
}

// released adds what goes wrong after a Release.
func (w *ways) released(spoil func(b *book.Book, m book.Moment, c driver.Claim, err error) error) {
	release := w.release
	w.release = func(b *book.Book, m book.Moment, c driver.Claim) error {
		return spoil(b, m, c, release(b, m, c))
	}
}

// unhears drops the wakes that match.
func (w *ways) unhears(match func(b *book.Book, p book.Push) bool) {
	wake := w.wake
	w.wake = func(b *book.Book, p book.Push) (driver.Grant, bool) {
		g, ok := wake(b, p)
		return g, ok && !match(b, p)
	}
}

// entry is the entry with this id, nil if there is none.
func entry(b *book.Book, id string) *book.Entry {
	for _, entries := range [][]book.Entry{b.Held, b.Queue} {
		for i := range entries {
			if entries[i].ID == id {
				return &entries[i]
			}
		}
	}
	return nil
}

func clone(e *book.Entry) *book.Entry {
	if e == nil {
		return nil
	}
	c := *e
	return &c
}

func holds(b *book.Book, id string) bool {
	return slices.ContainsFunc(b.Held, func(e book.Entry) bool { return e.ID == id })
}

func waits(b *book.Book, id string) bool {
	return slices.ContainsFunc(b.Queue, func(e book.Entry) bool { return e.ID == id })
}

func BenchmarkLedger(b *testing.B) { Bench(b, ledgers(right())) }
