package drivertest

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// sometimes are stores that are wrong now and then, so that a second try may find nothing.
var sometimes = []mutant{
	{"passes the turn to the last in the queue once", "queue/first-come-first-served", func(w *ways) {
		w.turning(func(n int) bool { return n == 1 })
	}},
	{"passes each third turn to the last in the queue", "history/calm", func(w *ways) {
		w.turning(func(n int) bool { return n%3 == 0 })
	}},
	{"does not notify of the first break", "notify/break", unheard(1)},
	{"does not notify of the first break", "notify/stop", unheard(1)},
	{"does not notify of the second break", "notify/nothing-else", unheard(2)},
	{"gives a second token once", "acquire/twice-is-once", func(w *ways) {
		given := false
		w.before(func(b *book.Book, _ *book.Moment, a *driver.Ask) {
			if e := entry(b, a.ID); e != nil && !given {
				given = true
				b.Floor++
				e.Fence = b.Floor
			}
		})
	}},
}

// turning turns the queue for the n-th release that finds several waiters, if match does.
func (w *ways) turning(match func(n int) bool) {
	release, n := w.release, 0
	w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
		if len(b.Queue) < 2 {
			return release(b, m, r)
		}
		if n++; !match(n) {
			return release(b, m, r)
		}
		slices.Reverse(b.Queue)
		defer func() { slices.Reverse(b.Queue) }()
		return release(b, m, r)
	}
}

// unheard drops the notice of the n-th break.
func unheard(n int) func(*ways) {
	return func(w *ways) {
		told, tells := 0, w.tells
		w.tells = func(clerk string, e book.Entry) bool {
			told++
			return told != n && tells(clerk, e)
		}
	}
}

// judged judges a store as if it were on a server, in virtual time. It returns the log of the
// test, and the failure of the rule.
func judged(t *testing.T, name string, w ways) (log string, failure error) {
	t.Helper()
	r := all[slices.IndexFunc(all, func(r rule) bool { return r.name == name })]
	synctest.Test(t, func(t *testing.T) {
		h, tb := ledgers(w), &logged{TB: t}
		h.Bubble = false
		failure = insist(tb, h, r.check)
		log = tb.log
	})
	return log, failure
}

// TestSometimes checks that there is no second try for a store that answers fast.
func TestSometimes(t *testing.T) {
	for _, m := range sometimes {
		t.Run(m.rule+"/"+strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			w := right()
			m.spoil(&w)
			log, failure := judged(t, m.rule, w)
			if failure == nil || log != "" {
				t.Errorf("a store that %s: %s failed with %v, and logged %q", m.name, m.rule, failure, log)
			}
		})
	}
}

// A slow store takes long for its first calls.
type slow struct {
	clerk
	calls *atomic.Int64 // so far
	first int64
	err   error
}

func (s slow) late() error {
	if s.calls.Add(1) > s.first {
		return nil
	}
	<-time.After(2 * time.Second)
	return s.err
}

func (s slow) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := s.late(); err != nil {
		return driver.Grant{}, err
	}
	return s.clerk.Acquire(ctx, a)
}

func (s slow) Renew(ctx context.Context, rs []driver.Renewal) []error {
	if err := s.late(); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	return s.clerk.Renew(ctx, rs)
}

func (s slow) Release(ctx context.Context, rs []driver.Release) []error {
	if err := s.late(); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	return s.clerk.Release(ctx, rs)
}

// slowly makes the first calls of a store slow.
func slowly(first int64, err error) func(*ways) {
	return func(w *ways) {
		calls := new(atomic.Int64)
		w.wrap = func(c clerk) driver.Store { return slow{c, calls, first, err} }
	}
}

// TestLate checks that late tries of a rule are reported, in one line. They do not break the
// rule. Later tries that are in time do.
func TestLate(t *testing.T) {
	const always = math.MaxInt64
	for name, test := range map[string]struct {
		rule   string
		spoil  []func(*ways)
		fails  bool
		report string
	}{
		"always late for places":    {"queue/first-come-first-served", []func(*ways){slowly(always, nil)}, false, "in 14 of the tries"},
		"always late for a TTL":     {"place/asking-keeps-it", []func(*ways){slowly(always, nil)}, false, "in 14 of the tries"},
		"late at first":             {"queue/cancelled", []func(*ways){slowly(4, nil)}, false, "in 1 of the tries"},
		"late at first, then wrong": {"queue/cancelled", []func(*ways){slowly(1, nil), spoil("refuses a free key")}, true, "in 1 of the tries"},
		"never answers":             {"queue/cancelled", []func(*ways){slowly(always, errReset)}, true, "in 4 of the tries"},
	} {
		t.Run(name, func(t *testing.T) {
			w := right()
			for _, spoil := range test.spoil {
				spoil(&w)
			}
			log, failure := judged(t, test.rule, w)
			if (failure != nil) != test.fails {
				t.Errorf("%s failed with %v, want a failure: %v", test.rule, failure, test.fails)
			}
			if strings.Count(log, "\n") != 1 || !strings.Contains(log, "not proved on a machine this slow: ") || !strings.Contains(log, test.report) {
				t.Errorf("logged %q, want one line of what is not proved, with %q", log, test.report)
			}
		})
	}
}

// spoil is the mistake of a mutant.
func spoil(name string) func(*ways) {
	return mutants[slices.IndexFunc(mutants, func(m mutant) bool { return m.name == name })].spoil
}
