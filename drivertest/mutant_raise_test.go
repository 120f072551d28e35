package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// raiseMutants go wrong with requested tokens, or with the report about their engine.
var raiseMutants = []mutant{
	{"does not hear which token is asked for", "raise/asked-for", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) { a.Fence = 0 })
	}},
	{"gives the token that is asked for though it is small", "raise/asked-for", func(w *ways) {
		w.after(func(_ *book.Book, a driver.Ask, g *driver.Grant) error {
			if g.OK && a.Fence > 0 {
				g.Fence = a.Fence
			}
			return nil
		})
	}},
	{"gives the token that is asked for, and then its span again", "raise/asked-for", func(w *ways) {
		w.after(func(b *book.Book, a driver.Ask, g *driver.Grant) error {
			if g.OK && g.Fence == a.Fence {
				b.Floor = g.Fence
			}
			return nil
		})
	}},
	{"raises the token of a claim that asks again", "raise/asked-again", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, a *driver.Ask) {
			if holds(b, a.ID) {
				_ = b.Renew(*m, driver.Renewal{Claim: a.Claim, Fence: a.Fence})
			}
		})
	}},
	{"gives any token that is asked for", "raise/asked-too-far", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, a *driver.Ask) { trust(m, a.Fence) })
	}},
	{"keeps a place for a claim that asks for too much", "raise/asked-too-far", func(w *ways) {
		w.refusing(func(b *book.Book, m book.Moment, a driver.Ask) {
			b.Queue = append(b.Queue, book.Entry{
				ID: a.ID, Weight: a.Weight, Limit: a.Limit, TTL: a.TTL, Until: m.Now + a.TTL, Asked: m.Now, Span: 1,
			})
		})
	}},
	{"goes to the token that it has refused", "raise/asked-too-far", func(w *ways) {
		w.refusing(func(b *book.Book, _ book.Moment, a driver.Ask) { b.Floor = a.Fence })
	}},

	{"does not raise tokens", "raise/renewal", func(w *ways) {
		w.renewing(func(_ *book.Book, _ book.Moment, r *driver.Renewal) { r.Fence = 0 })
	}},
	{"lowers tokens", "raise/renewal", func(w *ways) {
		w.renewing(func(b *book.Book, _ book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); e != nil && r.Fence > 0 {
				e.Fence = 0
			}
		})
	}},
	{"raises a token without its span", "raise/renewal", func(w *ways) {
		w.renewing(func(b *book.Book, _ book.Moment, r *driver.Renewal) {
			if e := entry(b, r.ID); e != nil && r.Fence > e.Fence {
				e.Span = 1
			}
		})
	}},
	{"shows the token from before it was raised", "raise/renewal", func(w *ways) {
		w.showing(func(h *driver.Holder, _ book.Entry) { h.Fence -= ahead })
	}},
	{"forgets a raised token with its claim", "raise/later-grants", func(w *ways) {
		renew := w.renew
		w.renew = func(b *book.Book, m book.Moment, r driver.Renewal) error {
			floor := b.Floor
			defer func() { b.Floor = floor }()
			return renew(b, m, r)
		}
	}},
	{"forgets the span of a raised token", "raise/later-grants", func(w *ways) {
		w.renewed(func(b *book.Book, _ book.Moment, r driver.Renewal, err error) error {
			if err == nil && r.Fence > 0 {
				b.Floor = r.Fence
			}
			return err
		})
	}},
	{"raises a token to anything", "raise/too-far", func(w *ways) {
		renew := w.renew
		w.renew = func(b *book.Book, m book.Moment, r driver.Renewal) error {
			trust(&m, r.Fence)
			return renew(b, m, r)
		}
	}},
	{"ends a claim that would be raised too far", "raise/too-far", func(w *ways) {
		w.renewed(func(b *book.Book, m book.Moment, r driver.Renewal, err error) error {
			if errors.Is(err, driver.ErrInvalid) {
				_ = b.Release(m, driver.Release{Claim: r.Claim})
			}
			return err
		})
	}},
	{"goes to the token that it has not raised to", "raise/too-far", func(w *ways) {
		w.renewed(func(b *book.Book, _ book.Moment, r driver.Renewal, err error) error {
			if errors.Is(err, driver.ErrInvalid) {
				b.Floor = r.Fence
			}
			return err
		})
	}},
	{"gives a reader that joins others a token that it asks for", "raise/readers", func(w *ways) {
		w.after(func(_ *book.Book, a driver.Ask, g *driver.Grant) error {
			if g.OK && a.Shared() {
				g.Fence = max(g.Fence, a.Fence)
			}
			return nil
		})
	}},
	{"does not raise the phase with a reader", "raise/readers", func(w *ways) {
		w.raisedPhase(func(before, _ uint64) uint64 { return before })
	}},
	{"lowers the phase to the reader that was raised last", "raise/readers", func(w *ways) {
		w.raisedPhase(func(_, raised uint64) uint64 { return raised })
	}},

	{"keeps the token of a reader that asks again", "raise/reader-asks-again", func(w *ways) {
		acquire := w.acquire
		w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
			before := clone(entry(b, a.ID))
			g, err := acquire(b, m, a)
			if g.OK && before != nil && before.Fence > 0 {
				g.Fence, entry(b, a.ID).Fence = before.Fence, before.Fence
			}
			return g, err
		}
	}},
	{"gives a reader that asks again a raised token and does not keep it", "raise/reader-asks-again", func(w *ways) {
		w.entered(func(e, before *book.Entry, _ book.Moment) {
			if before != nil && before.Fence > 0 {
				e.Fence = before.Fence
			}
		})
	}},

	{"raises tokens that it says it does not", "feature/no-raise", func(w *ways) { w.lacks = Raise }},
	{"takes a claim that it says it cannot raise for lost", "feature/no-raise", func(w *ways) {
		fixed(w)
		w.renewed(func(_ *book.Book, _ book.Moment, _ driver.Renewal, err error) error {
			if err != nil {
				return driver.ErrLost
			}
			return nil
		})
		w.lacks = Raise
	}},

	{"cannot tell how it is set up", "engine/check", func(w *ways) {
		w.check = func() ([]string, error) { return nil, errReset }
	}},
	{"warns of nothing in particular", "engine/check", func(w *ways) {
		w.check = func() ([]string, error) { return []string{""}, nil }
	}},
	{"is made a second time", "engine/create", func(w *ways) {
		w.create = func(books map[string]*book.Book) error { clear(books); return nil }
	}},
	{"cannot be made a second time", "engine/create", func(w *ways) {
		w.create = func(map[string]*book.Book) error { return errReset }
	}},
	{"hides how it is made", "engine/create", func(w *ways) {
		w.schema = nil
	}},
	{"is not born yet", "engine/age", func(w *ways) {
		w.age = func(passed time.Duration) time.Duration { return passed - time.Second }
	}},
	{"grows younger", "engine/age", func(w *ways) {
		age := time.Hour
		w.age = func(time.Duration) time.Duration { age--; return age }
	}},
}

// trust sets a clock so that a token is not too far ahead.
func trust(m *book.Moment, fence uint64) {
	if lead := int64(fence) - m.Wall; lead > driver.MaxLead {
		m.Wall += lead
	}
}

// refusing adds a mistake with a claim that is ErrInvalid.
func (w *ways) refusing(spoil func(b *book.Book, m book.Moment, a driver.Ask)) {
	acquire := w.acquire
	w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
		g, err := acquire(b, m, a)
		if errors.Is(err, driver.ErrInvalid) {
			spoil(b, m, a)
		}
		return g, err
	}
}

// raisedPhase sets the token of a phase whose reader has been raised.
func (w *ways) raisedPhase(phase func(before, raised uint64) uint64) {
	renew := w.renew
	w.renew = func(b *book.Book, m book.Moment, r driver.Renewal) error {
		before := b.Phase
		err := renew(b, m, r)
		if err == nil && r.Fence > 0 && before > 0 {
			b.Phase = phase(before, entry(b, r.ID).Fence)
		}
		return err
	}
}
