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
		w.renewed(func(b *book.Book, m book.Moment, c driver.Claim, err error) error {
			if err != nil && len(b.Held) == 0 {
				_, _ = b.Acquire(m, c, "")
			}
			return err
		})
	}},
	{"queues a claim by Renew", "renew/queues-nothing", func(w *ways) {
		w.renewed(func(b *book.Book, m book.Moment, c driver.Claim, err error) error {
			if err != nil && len(b.Held) > 0 {
				_, _ = b.Acquire(m, waiting(c), "")
			}
			return err
		})
	}},
	{"revives by Renew what ran out", "renew/revives-nothing", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, c *driver.Claim) {
			if e := entry(b, c.ID); e != nil && e.Fence != 0 {
				e.Until = max(e.Until, m.Now+1)
			}
		})
	}},
	{"brings back by Renew what was released", "renew/after-release", func(w *ways) {
		known := make(map[string]bool)
		w.releasing(func(b *book.Book, c *driver.Claim) { known[c.ID] = known[c.ID] || holds(b, c.ID) })
		w.renewed(func(b *book.Book, m book.Moment, c driver.Claim, err error) error {
			if err != nil && known[c.ID] {
				_, err = b.Acquire(m, c, "")
			}
			return err
		})
	}},
	{"renews a claim that waits", "renew/of-waiting", func(w *ways) {
		w.renewed(func(b *book.Book, _ book.Moment, c driver.Claim, err error) error {
			if waits(b, c.ID) {
				return nil
			}
			return err
		})
	}},
	{"renews whoever holds the key", "renew/only-the-owner", func(w *ways) {
		w.renewing(func(b *book.Book, _ book.Moment, c *driver.Claim) {
			if len(b.Held) > 0 {
				c.ID = b.Held[0].ID
			}
		})
	}},
	{"prolongs whoever holds the key", "renew/only-the-owner", func(w *ways) {
		w.renewed(func(b *book.Book, m book.Moment, c driver.Claim, err error) error {
			for i := range b.Held {
				b.Held[i].Until = m.Now + c.TTL
			}
			return err
		})
	}},
	{"does nothing for a Renew but look", "renew/keeps", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, c *driver.Claim) {
			if e := entry(b, c.ID); e != nil {
				c.TTL = e.Until - m.Now
			}
		})
	}},
	{"renews by the TTL of the Acquire", "renew/longer", func(w *ways) {
		w.renewing(func(b *book.Book, _ book.Moment, c *driver.Claim) {
			if e := entry(b, c.ID); e != nil {
				c.TTL = e.TTL
			}
		})
	}},
	{"never shortens a claim", "renew/shorter", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, c *driver.Claim) {
			if e := entry(b, c.ID); e != nil {
				c.TTL = max(c.TTL, e.Until-m.Now)
			}
		})
	}},
	{"gives a new token by Renew", "renew/keeps-the-fence", func(w *ways) {
		w.renewed(func(b *book.Book, _ book.Moment, c driver.Claim, err error) error {
			if e := entry(b, c.ID); e != nil && e.Fence != 0 {
				b.Floor++
				e.Fence = b.Floor
			}
			return err
		})
	}},

	{"ends nothing by Release", "release/frees", func(w *ways) {
		w.release = func(*book.Book, book.Moment, driver.Claim) error { return nil }
	}},
	{"releases whoever holds the key", "release/only-the-owner", func(w *ways) {
		w.releasing(func(b *book.Book, c *driver.Claim) {
			if len(b.Held) > 0 {
				c.ID = b.Held[0].ID
			}
		})
	}},
	{"releases whoever took the key after an expiry", "release/after-expiry", func(w *ways) {
		heir := make(map[string]string)
		w.before(func(b *book.Book, m *book.Moment, c *driver.Claim) {
			if len(b.Held) > 0 && b.Held[0].Until <= m.Now {
				heir[b.Held[0].ID] = c.ID
			}
		})
		w.releasing(func(b *book.Book, c *driver.Claim) {
			if id := heir[c.ID]; id != "" {
				c.ID = id
			}
		})
	}},
	{"releases all claims on the key", "release/one-of-several", func(w *ways) {
		w.released(func(b *book.Book, _ book.Moment, _ driver.Claim, err error) error {
			if err == nil {
				b.Held = nil
			}
			return err
		})
	}},
	{"says of every Release that it ended something", "release/twice", func(w *ways) {
		w.released(func(*book.Book, book.Moment, driver.Claim, error) error { return nil })
	}},
	{"does not release what waits", "release/waiting", func(w *ways) {
		w.releasing(func(b *book.Book, c *driver.Claim) {
			if waits(b, c.ID) {
				c.ID = "nobody"
			}
		})
	}},

	{"has no tombstones", "late/after-holding", func(w *ways) {
		w.releasing(func(_ *book.Book, c *driver.Claim) { c.Late = false })
	}},
	{"has tombstones only for what it knew", "late/before-arrival", func(w *ways) {
		w.releasing(func(b *book.Book, c *driver.Claim) { c.Late = c.Late && entry(b, c.ID) != nil })
	}},
	{"has tombstones only for what held", "late/while-waiting", func(w *ways) {
		w.releasing(func(b *book.Book, c *driver.Claim) { c.Late = c.Late && holds(b, c.ID) })
	}},
	{"forgets tombstones after five seconds", "late/for-ten-seconds", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, _ *driver.Claim) {
			b.Tombs = slices.DeleteFunc(b.Tombs, func(t book.Tomb) bool { return t.Until < m.Now+5*time.Second })
		})
	}},
	{"keeps tombstones for keys instead of claims", "late/only-its-own", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, c *driver.Claim) {
			if len(b.Tombs) > 0 {
				c.ID = b.Tombs[0].ID
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
		w.after(func(_ *book.Book, _ driver.Claim, g *driver.Grant) error { g.TTL *= 2; return nil })
	}},
	{"keeps the old TTL when asked again", "ttl/asking-again", func(w *ways) {
		w.entered(func(e, before *book.Entry, _ book.Moment) {
			if before != nil && e.Fence == before.Fence {
				e.Until = before.Until
			}
		})
	}},
	{"has one TTL for all claims on a key", "ttl/each-its-own", func(w *ways) {
		w.after(func(b *book.Book, _ driver.Claim, _ *driver.Grant) error {
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
		w.renewed(func(b *book.Book, m book.Moment, c driver.Claim, err error) error {
			if c.Leave && err == nil {
				return b.Release(m, c)
			}
			return err
		})
	}},
	{"does not prolong a claim by Leave", "leave/longer", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, c *driver.Claim) {
			if e := entry(b, c.ID); c.Leave && e != nil {
				c.TTL = min(c.TTL, e.Until-m.Now)
			}
		})
	}},
	{"does not shorten a claim by Leave", "leave/shortens", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, c *driver.Claim) {
			if e := entry(b, c.ID); c.Leave && e != nil {
				c.TTL = max(c.TTL, e.Until-m.Now)
			}
		})
	}},
	{"leaves no claim for less than a TTL", "leave/briefly", func(w *ways) {
		w.renewed(func(_ *book.Book, _ book.Moment, c driver.Claim, err error) error {
			if c.Leave && c.TTL < w.minTTL {
				return driver.ErrInvalid
			}
			return err
		})
	}},
	{"renews after Leave", "leave/is-the-last", func(w *ways) {
		w.renewing(func(_ *book.Book, _ book.Moment, c *driver.Claim) { c.Leave = false })
	}},
	{"creates a claim by Leave", "leave/of-nothing", func(w *ways) {
		w.renewing(func(b *book.Book, m book.Moment, c *driver.Claim) {
			if c.Leave && entry(b, c.ID) == nil {
				_, _ = b.Acquire(m, *c, "")
			}
		})
	}},
}
