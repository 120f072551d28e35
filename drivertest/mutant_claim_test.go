package drivertest

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

const never = time.Duration(1 << 62)

var errReset = errors.New("connection reset")

// claimMutants go wrong in an Acquire.
var claimMutants = []mutant{
	{"refuses a free key", "acquire/free", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error { *g = driver.Grant{}; return nil })
	}},
	{"takes a refusal for an error", "acquire/exclusive", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error {
			if !g.OK {
				return errReset
			}
			return nil
		})
	}},
	{"has claims of its own in each client", "acquire/exclusive", func(w *ways) { w.single = true }},
	{"tells a token with a refusal", "acquire/refusal-is-zero", func(w *ways) {
		w.after(func(b *book.Book, _ driver.Ask, g *driver.Grant) error { g.Fence = b.Floor; return nil })
	}},
	{"gives a new token when asked again", "acquire/twice-is-once", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, a *driver.Ask) {
			if e := entry(b, a.ID); e != nil {
				b.Floor++
				e.Fence = b.Floor
			}
		})
	}},
	{"refuses a holder that asks again", "acquire/twice-at-the-same-time", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, a *driver.Ask) {
			if holds(b, a.ID) {
				a.ID += "'"
			}
		})
	}},
	{"grants to two that ask at the same time", "acquire/one-of-many", func(w *ways) {
		// The store checks that the key is free, and writes a little later.
		w.before(func(b *book.Book, m *book.Moment, _ *driver.Ask) {
			if len(b.Held) == 1 && b.Held[0].Since == m.Wall {
				b.Held[0].Weight = 0
			}
		})
	}},
	{"waits until the claim is granted", "acquire/does-not-wait", func(w *ways) {
		w.after(func(_ *book.Book, a driver.Ask, g *driver.Grant) error {
			if a.Wait && !g.OK {
				return errors.New("gave up waiting")
			}
			return nil
		})
	}},
	{"keeps what it refused", "acquire/refused-leaves-nothing", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) { a.Wait = true })
	}},
	{"knows claims by their owner", "acquire/owner-is-no-identity", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, a *driver.Ask) {
			for _, held := range b.Held {
				if held.Owner == a.Owner && held.Note == a.Note {
					a.ID = held.ID
				}
			}
		})
	}},
	{"says nothing with a refusal", "acquire/refusal-tells", func(w *ways) {
		w.after(func(_ *book.Book, _ driver.Ask, g *driver.Grant) error {
			if !g.OK {
				*g = driver.Grant{}
			}
			return nil
		})
	}},

	{"lets readers in beside a writer", "weight/readers", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, a *driver.Ask) {
			if a.Shared() && len(b.Held) == 1 {
				b.Held[0].Weight = 1
			}
		})
	}},
	{"has room for 32 readers", "weight/many-readers", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) {
			if a.Shared() {
				a.Limit = 32
			}
		})
	}},
	{"lets an upgrade stand beside two readers", "weight/upgrade", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) {
			if a.Weight == driver.MaxWeight-1 {
				a.Weight--
			}
		})
	}},
	{"has one slot too many", "weight/slots", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) {
			if a.Limit < driver.MaxWeight {
				a.Limit++
			}
		})
	}},
	{"counts claims instead of weights", "weight/heavy-slots", func(w *ways) {
		w.before(func(_ *book.Book, _ *book.Moment, a *driver.Ask) {
			if a.Limit < driver.MaxWeight {
				a.Weight = 1
			}
		})
	}},
	{"goes by the limit of whoever came first", "weight/own-limit", func(w *ways) {
		w.before(func(b *book.Book, _ *book.Moment, a *driver.Ask) {
			if len(b.Held) > 0 && a.Limit < driver.MaxWeight {
				a.Limit = max(a.Weight, b.Held[0].Limit)
			}
		})
	}},
	{"ends all slots with the first that runs out", "weight/freed-by-expiry", func(w *ways) {
		w.before(func(b *book.Book, m *book.Moment, _ *driver.Ask) {
			if slices.ContainsFunc(b.Held, func(e book.Entry) bool { return e.Until <= m.Now }) {
				b.Held = nil
			}
		})
	}},

	{"takes Job for job", "key/odd", func(w *ways) { w.key = strings.ToLower }},
	{"drops spaces around a key", "key/odd", func(w *ways) { w.key = strings.TrimSpace }},
	{"takes a key for a path", "key/odd", func(w *ways) { w.key = path.Clean }},
	{"ends a key at a NUL", "key/odd", func(w *ways) {
		w.key = func(key string) string {
			key, _, _ = strings.Cut(key, "\x00")
			return key
		}
	}},
	{"looks at 255 bytes of a key", "key/long", func(w *ways) {
		w.key = func(key string) string { return key[:min(len(key), 255)] }
	}},
	{"takes .. for .", "key/whole", func(w *ways) {
		w.key = func(key string) string {
			if key == ".." {
				return "."
			}
			return key
		}
	}},
}
