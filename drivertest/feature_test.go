package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/rules"
)

// limited are stores that lack a feature and do the rest well.
var limited = map[Feature]func(*ways){
	Readers: func(w *ways) { w.rejecting(driver.Ask.Shared) },
	Slots:   func(w *ways) { w.rejecting(func(a driver.Ask) bool { return !a.Shared() && !a.Exclusive() }) },
	Tokens: func(w *ways) {
		fixed(w)
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error {
			g.Fence, g.Span, g.Holder.Fence = 0, 0, 0
			return nil
		})
		w.pushing(func(_ *book.Book, p book.Push) driver.Grant { p.Grant.Fence, p.Grant.Span = 0, 0; return p.Grant })
		w.showing(func(h *driver.Holder, _ book.Entry) { h.Fence = 0 })
	},
	Raise: fixed,
	Queue: lineless,
	Crowd: func(w *ways) {
		release := w.release
		w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
			// In reverse, a slot could stay behind a claim that does not fit, and then sleep at the front.
			whole := !slices.ContainsFunc(b.Queue, func(e book.Entry) bool { return e.Weight < e.Limit })
			if whole && len(b.Queue) > 2 && b.Queue[0].Until-m.Now < time.Second { // as in histories alone
				slices.Reverse(b.Queue)
				defer func() { slices.Reverse(b.Queue) }()
			}
			return release(b, m, r)
		}
	},
	Tombstones: func(w *ways) {
		w.releasing(func(_ *book.Book, r *driver.Release) { r.Late = false })
	},
	Details: func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error {
			g.Left, g.Holder = 0, driver.Holder{}
			return nil
		})
	},
	Reasons: func(w *ways) {
		w.renewed(func(_ *book.Book, _ book.Moment, _ driver.Renewal, err error) error {
			if errors.Is(err, driver.ErrLost) {
				return driver.ErrLost
			}
			return err
		})
	},
	Expiry: func(w *ways) {
		w.entered(func(e, _ *book.Entry, _ book.Moment) {
			if e.Fence != 0 {
				e.Until = never
			}
		})
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error {
			g.TTL, g.Left, g.Holder.Left = 0, 0, 0
			return nil
		})
		w.showing(func(h *driver.Holder, _ book.Entry) { h.Left = 0 })
	},
	Outlive: func(w *ways) {
		w.close = func(books map[string]*book.Book, clerk string) {
			for _, b := range books {
				b.Held = slices.DeleteFunc(b.Held, func(e book.Entry) bool { return e.Session == clerk && !e.Left })
				b.Queue = slices.DeleteFunc(b.Queue, func(e book.Entry) bool { return e.Session == clerk })
			}
		}
	},
	Watch: func(w *ways) {
		w.wrap = func(c clerk) driver.Store {
			return struct {
				driver.Store
				driver.Notifier
				driver.Inspector
			}{c, c, c}
		}
	},
	Notify: func(w *ways) {
		w.wrap = func(c clerk) driver.Store {
			return struct {
				driver.Store
				driver.Watcher
				driver.Inspector
			}{c, c, c}
		}
	},
	Roam: func(w *ways) {
		renew := w.renew
		w.renew = func(b *book.Book, m book.Moment, r driver.Renewal) error {
			if r.Leave && holds(b, r.ID) {
				return fmt.Errorf("%w: want one that stays with its client", driver.ErrInvalid)
			}
			return renew(b, m, r)
		}
	},
	Inspect: func(w *ways) {
		w.wrap = func(c clerk) driver.Store {
			return struct {
				driver.Store
				driver.Watcher
				driver.Notifier
			}{c, c, c}
		}
	},
}

// TestLimited checks that a store may lack a feature if the harness declares so, and fails
// otherwise.
func TestLimited(t *testing.T) {
	for feature := Readers; feature < end; feature <<= 1 {
		t.Run(feature.String(), func(t *testing.T) {
			w := right()
			limited[feature](&w)
			h := ledgers(w)
			if !slices.ContainsFunc(suite(h).Rules, func(r rules.Rule) bool { return len(Check(t, h, r.Name)) > 0 }) {
				t.Errorf("a store that lacks %v passes without saying so", feature)
			}
			w.lacks = feature
			for _, failure := range Check(t, ledgers(w), quick()...) {
				t.Errorf("a store that says it lacks %v fails %s: %v", feature, failure.Rule, failure)
			}
		})
	}
}

// quick names the rules to check for a feature: every rule, or in the short form every rule
// but the histories, which cost more than the rest together.
func quick() (names []string) {
	for _, r := range all {
		if !testing.Short() || !strings.HasPrefix(r.name, "history/") {
			names = append(names, r.name)
		}
	}
	return names
}

// TestLeast checks that a store may lack every feature.
func TestLeast(t *testing.T) {
	w := right()
	for feature := Readers; feature < end; feature <<= 1 {
		if feature < Watch || feature == Roam {
			limited[feature](&w)
		}
		w.lacks |= feature
	}
	w.wrap = func(c clerk) driver.Store { return struct{ driver.Store }{c} }
	Run(t, ledgers(w))
}

// fixed gives no requested token.
func fixed(w *ways) {
	w.rejecting(func(a driver.Ask) bool { return a.Fence > 0 })
	renew := w.renew
	w.renew = func(b *book.Book, m book.Moment, r driver.Renewal) error {
		if r.Fence > 0 {
			return fmt.Errorf("%w: want one that asks for no token", driver.ErrInvalid)
		}
		return renew(b, m, r)
	}
}

// rejecting lets a store reject the requests that match.
func (w *ways) rejecting(match func(driver.Ask) bool) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
		if match(a) {
			return driver.Grant{}, fmt.Errorf("%w: want another", driver.ErrInvalid)
		}
		return acquire(b, m, a)
	}
}

// lineless keeps no queue, and wakes every watch when a claim has ended.
func lineless(w *ways) {
	w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) { a.Wait = false })
	w.noisy = true
}
