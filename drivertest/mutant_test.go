package drivertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A mutant is a store with one mistake, and the rule against the mistake.
type mutant struct {
	name  string
	rule  string
	spoil func(*ways)
}

var mutants = slices.Concat(claimMutants, endMutants, tokenMutants, raiseMutants, lineMutants, callMutants)

func TestUnbroken(t *testing.T) { Run(t, ledgers(right())) }

// TestMutants checks that the rule of a mutant finds the mutant.
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

// TestEveryRuleIsBroken checks that no rule is without a mutant: an unbroken rule may check
// nothing.
func TestEveryRuleIsBroken(t *testing.T) {
	for _, r := range all {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.rule == r.name }) {
			t.Errorf("no mutant breaks %s: %s", r.name, r.words)
		}
	}
}

// before adds a mistake before an Acquire.
func (w *ways) before(spoil func(b *book.Book, m *book.Moment, a *driver.Ask)) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
		spoil(b, &m, &a)
		return acquire(b, m, a)
	}
}

// after adds a mistake after an Acquire.
func (w *ways) after(spoil func(b *book.Book, a driver.Ask, g *driver.Grant) error) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
		g, err := acquire(b, m, a)
		if err != nil {
			return g, err
		}
		return g, spoil(b, a, &g)
	}
}

// entered adds a mistake with the entry of a requested claim.
func (w *ways) entered(spoil func(e *book.Entry, before *book.Entry, m book.Moment)) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
		before := clone(entry(b, a.ID))
		g, err := acquire(b, m, a)
		if e := entry(b, a.ID); e != nil {
			spoil(e, before, m)
		}
		return g, err
	}
}

// waited reports by id whether the last Acquire of a claim had Wait.
func (w *ways) waited() map[string]bool {
	ids := make(map[string]bool)
	w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) { ids[a.ID] = a.Wait })
	return ids
}

// passing lets the claims that match pass the queue.
func (w *ways) passing(match func(driver.Ask) bool) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
		if !match(a) {
			return acquire(b, m, a)
		}
		line := b.Queue
		b.Queue = nil
		g, err := acquire(b, m, a)
		b.Queue = append(slices.DeleteFunc(line, func(e book.Entry) bool { return e.ID == a.ID }), b.Queue...)
		return g, err
	}
}

// renewing adds a mistake before a Renew.
func (w *ways) renewing(spoil func(b *book.Book, m book.Moment, r *driver.Renewal)) {
	renew := w.renew
	w.renew = func(b *book.Book, m book.Moment, r driver.Renewal) error {
		spoil(b, m, &r)
		return renew(b, m, r)
	}
}

// renewed adds a mistake after a Renew.
func (w *ways) renewed(spoil func(b *book.Book, m book.Moment, r driver.Renewal, err error) error) {
	renew := w.renew
	w.renew = func(b *book.Book, m book.Moment, r driver.Renewal) error {
		return spoil(b, m, r, renew(b, m, r))
	}
}

// releasing adds a mistake before a Release.
func (w *ways) releasing(spoil func(b *book.Book, r *driver.Release)) {
	release := w.release
	w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
		spoil(b, &r)
		return release(b, m, r)
	}
}

// released adds a mistake after a Release.
func (w *ways) released(spoil func(b *book.Book, m book.Moment, r driver.Release, err error) error) {
	release := w.release
	w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
		return spoil(b, m, r, release(b, m, r))
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
