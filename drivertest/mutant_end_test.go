package drivertest

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// endMutants go wrong when a claim is renewed, released or left alone.
var endMutants = []mutant{
	{"creates a claim by Renew", "renew/creates-nothing", func(w *ways) {
		w.renewed(func(b *book.Book, m book.Moment, r driver.Renewal, err error) error {
			if err != nil && len(b.Held) == 0 {
				_, _ = b.Acquire(m, driver.Ask{Claim: r.Claim}, "")
			}
			return err
		})
	}},
	{"queues a claim by Renew", "renew/queues-nothing", func(w *ways) {
		w.renewed(func(b *book.Book, m book.Moment, r driver.Renewal, err error) error {
			if err != nil && len(b.Held) > 0 {
				_, _ = b.Acquire(m, driver.Ask{Claim: r.Claim, Wait: true}, "")
			}
			return err
		})
	}},
	{"revives by Renew what ran out", "renew/revives-nothing", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); e != nil && e.Fence != 0 {
				e.Until = max(e.Until, m.Now+1)
			}
		})
	}},
	{"brings back by Renew what was released", "renew/after-release", func(w *ways) {
		known := make(map[string]bool)
		w.releasing(func(b *book.Book, r *driver.Release) { known[r.ID] = known[r.ID] || holds(b, r.ID) })
		w.renewed(func(b *book.Book, m book.Moment, r driver.Renewal, err error) error {
			if err != nil && known[r.ID] {
				_, err = b.Acquire(m, driver.Ask{Claim: r.Claim}, "")
			}
			return err
		})
	}},
	{"renews a claim that waits", "renew/of-waiting", func(w *ways) {
		w.renewed(func(b *book.Book, _ book.Moment, r driver.Renewal, err error) error {
			if waits(b, r.ID) {
				return nil
			}
			return err
		})
	}},
	{"renews whoever holds the key", "renew/only-the-owner", func(w *ways) {
		w.renewing(func(b *book.Book, _ book.Moment, r *driver.Renewal) {
			if len(b.Held) > 0 {
				r.ID = b.Held[0].ID
			}
		})
	}},
	{"prolongs whoever holds the key", "renew/only-the-owner", func(w *ways) {
		w.renewed(func(b *book.Book, m book.Moment, r driver.Renewal, err error) error {
			for i := range b.Held {
				b.Held[i].Until = m.Now + r.TTL
			}
			return err
		})
	}},
	{"does nothing for a Renew but look", "renew/keeps", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); e != nil {
				r.TTL = e.Until - m.Now
			}
		})
	}},
	{"renews by the TTL of the Acquire", "renew/longer", func(w *ways) {
		w.renewing(func(b *book.Book, _ book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); e != nil {
				r.TTL = e.TTL
			}
		})
	}},
	{"never shortens a claim", "renew/shorter", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); e != nil {
				r.TTL = max(r.TTL, e.Until-m.Now)
			}
		})
	}},
	{"gives a new token by Renew", "renew/keeps-the-fence", func(w *ways) {
		w.renewed(func(b *book.Book, _ book.Moment, r driver.Renewal, err error) error {
			if e := entry(b, r.ID); e != nil && e.Fence != 0 {
				b.Floor++
				e.Fence = b.Floor
			}
			return err
		})
	}},

	{"ends nothing by Release", "release/frees", func(w *ways) {
		w.release = func(*book.Book, book.Moment, driver.Release) error { return nil }
	}},
	{"releases whoever holds the key", "release/only-the-owner", func(w *ways) {
		w.releasing(func(b *book.Book, r *driver.Release) {
			if len(b.Held) > 0 {
				r.ID = b.Held[0].ID
			}
		})
	}},
	{"releases whoever took the key after an expiry", "release/after-expiry", func(w *ways) {
		heir := make(map[string]string)
		w.before(func(b *book.Book, m *book.Moment, a *driver.Ask) {
			if len(b.Held) > 0 && b.Held[0].Until <= m.Now {
				heir[b.Held[0].ID] = a.ID
			}
		})
		w.releasing(func(b *book.Book, r *driver.Release) {
			if id := heir[r.ID]; id != "" {
				r.ID = id
			}
		})
	}},
	{"releases all claims on the key", "release/one-of-several", func(w *ways) {
		w.released(func(b *book.Book, _ book.Moment, _ driver.Release, err error) error {
			if err == nil {
				b.Held = nil
			}
			return err
		})
	}},
	{"says of every Release that it ended something", "release/twice", func(w *ways) {
		w.released(func(*book.Book, book.Moment, driver.Release, error) error { return nil })
	}},
	{"does not release what waits", "release/waiting", func(w *ways) {
		w.releasing(func(b *book.Book, r *driver.Release) {
			if waits(b, r.ID) {
				r.ID = "nobody"
			}
		})
	}},

	{"has no tombstones", "late/after-holding", func(w *ways) {
		w.releasing(func(_ *book.Book, r *driver.Release) { r.Late = false })
	}},
	{"has tombstones only for what it knew", "late/before-arrival", func(w *ways) {
		w.releasing(func(b *book.Book, r *driver.Release) { r.Late = r.Late && entry(b, r.ID) != nil })
	}},
	{"has tombstones only for what held", "late/while-waiting", func(w *ways) {
		w.releasing(func(b *book.Book, r *driver.Release) { r.Late = r.Late && holds(b, r.ID) })
	}},
	{"forgets tombstones after five seconds", "late/for-ten-seconds", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, _ *driver.Ask) {
			b.Tombs = slices.DeleteFunc(b.Tombs, func(t book.Tomb) bool { return t.Until < m.Now+5*time.Second })
		})
	}},
	{"keeps tombstones for keys instead of claims", "late/only-its-own", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, a *driver.Ask) {
			if len(b.Tombs) > 0 {
				a.ID = b.Tombs[0].ID
			}
		})
	}},

	{"never ends a claim", "ttl/ends", func(w *ways) {
		w.entered(func(e, _ *book.Entry, _ book.Moment) { e.Until = never })
	}},
	{"ends a claim early", "ttl/ends", func(w *ways) {
		w.entered(func(e, _ *book.Entry, m book.Moment) { e.Until = m.Now + e.TTL*9/10 })
	}},
	{"promises more than it keeps", "ttl/ends", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error { g.TTL *= 2; return nil })
	}},
	{"keeps the old TTL when asked again", "ttl/asking-again", func(w *ways) {
		w.entered(func(e, before *book.Entry, _ book.Moment) {
			if before != nil && e.Fence == before.Fence {
				e.Until = before.Until
			}
		})
	}},
	{"has one TTL for all claims on a key", "ttl/each-its-own", func(w *ways) {
		w.after(func(b *book.Book, _ driver.Ask, _ *driver.Grant) error {
			for i := range b.Held {
				b.Held[i].Until = b.Held[len(b.Held)-1].Until
			}
			return nil
		})
	}},
	{"has a shortest TTL that it does not tell of", "ttl/shortest", func(w *ways) {
		w.entered(func(e, _ *book.Entry, _ book.Moment) {
			if e.Fence != 0 && e.TTL < 100*time.Millisecond {
				e.Until += time.Hour
			}
		})
	}},
	{"keeps a TTL that it says it cannot", "ttl/too-short", func(w *ways) { w.minTTL = 0 }},
	{"cannot keep a TTL of more than a day", "ttl/very-long", func(w *ways) {
		w.entered(func(e, _ *book.Entry, m book.Moment) {
			if e.TTL > 24*time.Hour {
				e.Until = m.Now
			}
		})
	}},

	{"takes Leave for a Release", "leave/stands", func(w *ways) {
		w.renewed(func(b *book.Book, m book.Moment, r driver.Renewal, err error) error {
			if r.Leave && err == nil {
				return b.Release(m, driver.Release{Claim: r.Claim})
			}
			return err
		})
	}},
	{"does not prolong a claim by Leave", "leave/longer", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); r.Leave && e != nil {
				r.TTL = min(r.TTL, e.Until-m.Now)
			}
		})
	}},
	{"does not shorten a claim by Leave", "leave/shortens", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); r.Leave && e != nil {
				r.TTL = max(r.TTL, e.Until-m.Now)
			}
		})
	}},
	{"leaves no claim for less than a TTL", "leave/briefly", func(w *ways) {
		w.renewed(func(_ *book.Book, _ book.Moment, r driver.Renewal, err error) error {
			if r.Leave && r.TTL < w.minTTL {
				return driver.ErrInvalid
			}
			return err
		})
	}},
	{"renews after Leave", "leave/is-the-last", func(w *ways) {
		w.renewing(func(_ *book.Book, _ book.Moment, r *driver.Renewal) { r.Leave = false })
	}},
	{"creates a claim by Leave", "leave/of-nothing", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, r *driver.Renewal) {
			if r.Leave && entry(b, r.ID) == nil {
				_, _ = b.Acquire(m, driver.Ask{Claim: r.Claim}, "")
			}
		})
	}},
}
