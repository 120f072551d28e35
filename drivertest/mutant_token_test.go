package drivertest

import (
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// tokenMutants give wrong tokens.
var tokenMutants = []mutant{
	{"starts its tokens again after a release", "token/over-release", func(w *ways) {
		w.released(func(b *book.Book, _ book.Moment, _ driver.Release, err error) error {
			if len(b.Held) == 0 {
				b.Floor = 0
			}
			return err
		})
	}},
	{"gives a token twice in a row", "token/over-release", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, _ *driver.Ask) {
			if len(b.Held) == 0 && b.Floor > 0 {
				b.Floor, m.Wall = b.Floor-1, 0
			}
		})
	}},
	{"starts its tokens again after an expiry", "token/over-expiry", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, _ *driver.Ask) {
			if slices.ContainsFunc(b.Held, func(e book.Entry) bool { return e.Until <= m.Now }) {
				b.Floor, m.Wall = 0, 1
			}
		})
	}},
	{"starts its tokens again after a break", "token/over-break", func(w *ways) {
		breaks := w.breaks
		w.breaks = func(b *book.Book, m book.Moment, id string) error {
			b.Floor = 0
			return breaks(b, m, id)
		}
	}},
	{"starts its tokens again when a client goes", "token/over-restart", func(w *ways) {
		w.close = func(books map[string]*book.Book, _ string) {
			for _, b := range books {
				b.Floor = 0
			}
		}
	}},
	{"gives the tokens of a span again", "token/span", func(w *ways) {
		w.after(func(b *book.Book, _ driver.Ask, g *driver.Grant) error {
			if g.OK {
				b.Floor = g.Fence
			}
			return nil
		})
	}},
	{"gives more tokens than were asked for", "token/span", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) { a.Span = driver.MaxSpan })
	}},
	{"gives who waited the tokens of the claim before", "token/span-in-line", func(w *ways) {
		w.releasing(func(b *book.Book, r *driver.Release) {
			if holds(b, r.ID) && len(b.Queue) > 0 {
				b.Floor--
			}
		})
	}},
	{"has tokens of 64 bits", "token/below-2-to-53", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error { g.Fence <<= 8; return nil })
	}},
	{"gives each reader a token of its own", "token/readers-share", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, _ *driver.Ask) { b.Phase = 0 })
	}},
	{"gives readers the token of the writer before", "token/readers-share", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, a *driver.Ask) {
			if a.Shared() && len(b.Held) == 0 && b.Floor > 0 {
				b.Floor, m.Wall = b.Floor-1, 0
			}
		})
	}},
	{"gives a writer the token of the readers before", "token/readers-share", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, a *driver.Ask) {
			if a.Exclusive() && len(b.Held) == 0 && b.Floor > 0 {
				b.Floor, m.Wall = b.Floor-1, 0
			}
		})
	}},
	{"gives readers behind a slot the token of the readers before", "token/slot-beside-readers", func(w *ways) {
		phase := uint64(0)
		w.after(func(b *book.Book, a driver.Ask, g *driver.Grant) error {
			if a.Shared() {
				phase = b.Phase
			} else if g.OK {
				b.Phase = phase
			}
			return nil
		})
	}},
	{"gives an upgrade the token of its reader", "token/slot-beside-readers", func(w *ways) {
		w.after(func(b *book.Book, a driver.Ask, g *driver.Grant) error {
			if g.OK && !a.Shared() {
				g.Fence = b.Held[0].Fence
			}
			return nil
		})
	}},
	{"gives all slots one token", "token/slots", func(w *ways) {
		w.after(func(b *book.Book, a driver.Ask, g *driver.Grant) error {
			if g.OK && a.Limit < driver.MaxWeight {
				g.Fence = b.Held[0].Fence
			}
			return nil
		})
	}},
}
