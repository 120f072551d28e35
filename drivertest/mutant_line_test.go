package drivertest

import (
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// lineMutants go wrong with claims that wait.
var lineMutants = []mutant{
	{"forgets who waits when its turn comes", "queue/eventually", func(w *ways) {
		w.released(func(b *book.Book, _ book.Moment, _ driver.Release, err error) error {
			for _, push := range b.Pushed {
				entry(b, push.ID).ID += "'"
			}
			return err
		})
	}},
	{"serves first whoever came last", "queue/first-come-first-served", func(w *ways) {
		release := w.release
		w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
			slices.Reverse(b.Queue)
			err := release(b, m, r)
			slices.Reverse(b.Queue)
			return err
		}
	}},
	{"has no queue", "queue/no-barging", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) { a.Wait = false })
	}},
	{"puts a try in the queue", "queue/try-keeps-no-place", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) { a.Wait = true })
	}},
	{"does not prolong a place in the queue", "place/asking-keeps-it", func(w *ways) {
		w.entered(func(e, before *book.Entry, _ book.Moment) {
			if before != nil && e.Fence == 0 {
				e.Until = before.Until
			}
		})
	}},
	{"keeps the place of the dead for ever", "place/silent-loses-it", func(w *ways) {
		w.entered(func(e, _ *book.Entry, _ book.Moment) {
			if e.Fence == 0 {
				e.Until = never
			}
		})
	}},
	{"gives a silent waiter its whole TTL", "place/silent-at-its-turn", func(w *ways) {
		w.released(func(b *book.Book, m book.Moment, _ driver.Release, err error) error {
			for _, push := range b.Pushed {
				e := entry(b, push.ID)
				e.Until = m.Now + e.TTL
			}
			return err
		})
	}},
	{"does not take Renew for a confirmation", "place/confirmed", func(w *ways) {
		waited := w.waited()
		w.renewing(func(_ *book.Book, _ book.Moment, r *driver.Renewal) {
			if waited[r.ID] {
				r.TTL = r.Alive()
			}
		})
	}},
	{"leaves in the queue who gave up", "queue/cancelled", func(w *ways) {
		release := w.release
		w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
			if waits(b, r.ID) {
				return nil
			}
			return release(b, m, r)
		}
	}},
	{"ends one claim of a call", "queue/holder-and-waiter-at-once", wrapped(func(c clerk) driver.Store { return single{c} })},
	{"does not take back a grant that nobody confirmed", "queue/cancelled-at-its-turn", func(w *ways) {
		asked := make(map[string]bool) // since it was granted
		w.after(func(_ *book.Book, a driver.Ask, g *driver.Grant) error { asked[a.ID] = g.OK; return nil })
		release := w.release
		w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
			if holds(b, r.ID) && !asked[r.ID] {
				return nil
			}
			return release(b, m, r)
		}
	}},
	{"forgets the queue when a claim expires", "queue/after-expiry", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, _ *driver.Ask) {
			if len(b.Held) > 0 && b.Held[0].Until <= m.Now {
				b.Queue = nil
			}
		})
	}},
	{"starves writers", "queue/writer-before-later-readers", func(w *ways) { w.passing(driver.Ask.Shared) }},
	{"lets readers pass an upgrade", "queue/upgrade", func(w *ways) { w.passing(driver.Ask.Shared) }},
	{"lets light claims pass heavy ones", "queue/heavy-head", func(w *ways) {
		w.passing(func(a driver.Ask) bool { return a.Weight == 1 && a.Limit < driver.MaxWeight })
	}},
	{"keeps readers waiting for a writer that gave up", "queue/readers-behind-a-cancelled-writer", func(w *ways) {
		release := w.release
		w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
			if e := entry(b, r.ID); r.Exclusive() && waits(b, r.ID) {
				e.ID, e.Until = "nobody", never
				return nil
			}
			return release(b, m, r)
		}
	}},

	{"wakes nobody", "watch/release", func(w *ways) {
		w.unhears(func(*book.Book, book.Push) bool { return true })
	}},
	{"ends a watch with its call", "watch/outlives-its-call", wrapped(func(c clerk) driver.Store { return hasty{c} })},
	{"watches only claims that wait already", "watch/before-the-request", wrapped(func(c clerk) driver.Store { return tardy{c} })},
	{"loses one wake in nine", "watch/everyone-in-turn", func(w *ways) {
		n := 0
		w.unhears(func(*book.Book, book.Push) bool { n++; return n%9 == 0 })
	}},
	{"loses a wake now and then in a crowd", "together/crowd", func(w *ways) {
		n := 0
		w.unhears(func(*book.Book, book.Push) bool { n++; return n%40 == 39 })
	}},
	{"has 32 watches at most", "watch/many-keys", wrapped(func(c clerk) driver.Store { return few{c} })},
	{"wakes the first of the readers", "watch/all-readers", func(w *ways) {
		w.unhears(func(b *book.Book, p book.Push) bool { return p.ID != b.Pushed[0].ID })
	}},
	{"wakes who waits for a slot when all are free", "watch/slot", func(w *ways) {
		w.unhears(func(b *book.Book, _ book.Push) bool { return len(b.Held) > 1 && b.Held[0].Limit < driver.MaxWeight })
	}},
	{"wakes nobody when a waiter gives up", "watch/cancelled-before", func(w *ways) {
		cancelled := false
		w.releasing(func(b *book.Book, r *driver.Release) { cancelled = waits(b, r.ID) })
		w.unhears(func(*book.Book, book.Push) bool { return cancelled })
	}},
	{"wakes nobody when a grant is given back", "watch/cancelled-at-its-turn", func(w *ways) {
		waited, back := w.waited(), false
		w.releasing(func(b *book.Book, r *driver.Release) { back = waited[r.ID] && holds(b, r.ID) })
		w.unhears(func(*book.Book, book.Push) bool { return back })
	}},
	{"wakes nobody after a break", "watch/break", func(w *ways) {
		broke := false
		w.releasing(func(*book.Book, *driver.Release) { broke = false })
		breaks := w.breaks
		w.breaks = func(b *book.Book, m book.Moment, id string) error {
			broke = true
			return breaks(b, m, id)
		}
		w.unhears(func(*book.Book, book.Push) bool { return broke })
	}},
	{"pushes a grant without a TTL", "push/ttl", func(w *ways) {
		w.pushing(func(_ *book.Book, p book.Push) driver.Grant { p.Grant.TTL = 0; return p.Grant })
	}},
	{"pushes a grant whose TTL counts from now", "push/ttl", func(w *ways) {
		w.pushing(func(b *book.Book, p book.Push) driver.Grant {
			p.Grant.TTL = driver.Claim{TTL: entry(b, p.ID).TTL}.Alive()
			return p.Grant
		})
	}},
	{"pushes a grant with the TTL of the claim", "push/ttl", func(w *ways) {
		w.pushing(func(b *book.Book, p book.Push) driver.Grant {
			p.Grant.TTL += entry(b, p.ID).TTL
			return p.Grant
		})
	}},
	{"pushes another token than it gives", "push/is-the-grant", func(w *ways) {
		w.pushing(func(_ *book.Book, p book.Push) driver.Grant { p.Grant.Fence++; return p.Grant })
	}},
	{"does not say up to where its tokens go", "push/floor", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error { g.Floor = 0; return nil })
	}},
	{"takes the token of the claim in the way for its last", "push/floor", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error { g.Floor = g.Holder.Fence; return nil })
	}},
	{"says that it will give tokens that it gives", "push/floor", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error { g.Floor += 1 << 40; return nil })
	}},
	{"wakes who has stopped listening", "watch/stop", wrapped(func(c clerk) driver.Store { return deaf{c} })},
	{"cannot close while somebody listens", "watch/close", wrapped(func(c clerk) driver.Store { return clinging{c} })},
}

// pushing replaces the grants that come with a wake.
func (w *ways) pushing(spoil func(b *book.Book, p book.Push) driver.Grant) {
	w.wake = func(b *book.Book, p book.Push) (driver.Grant, bool) { return spoil(b, p), true }
}
