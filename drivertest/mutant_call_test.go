package drivertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// callMutants go wrong with the view for people, with contexts, batches and concurrent
// calls.
var callMutants = []mutant{
	{"does not say whose claim it is", "inspect/holders", func(w *ways) {
		w.showing(func(h *driver.Holder, _ book.Entry) { h.Owner = "" })
	}},
	{"shows the claim's own id", "inspect/secret", func(w *ways) {
		w.showing(func(h *driver.Holder, e book.Entry) { h.ID = e.ID })
	}},
	{"does not show who waits", "inspect/line", func(w *ways) {
		holders := w.holders
		w.holders = func(b *book.Book, now time.Duration) []driver.Holder {
			return slices.DeleteFunc(holders(b, now), func(h driver.Holder) bool { return h.Waiting })
		}
	}},
	{"shows the queue from its end", "inspect/line", func(w *ways) {
		holders := w.holders
		w.holders = func(b *book.Book, now time.Duration) []driver.Holder {
			list := holders(b, now)
			slices.Reverse(list[min(1, len(list)):])
			return list
		}
	}},
	{"cuts a note at 255 bytes", "inspect/texts", func(w *ways) {
		w.showing(func(h *driver.Holder, _ book.Entry) { h.Note = h.Note[:min(len(h.Note), 255)] })
	}},
	{"shows what ran out", "inspect/gone", func(w *ways) {
		w.holders = func(b *book.Book, _ time.Duration) []driver.Holder { return b.Holders(0) }
	}},
	{"renews what it shows", "inspect/looking-changes-nothing", func(w *ways) {
		w.holders = func(b *book.Book, now time.Duration) []driver.Holder {
			for i := range b.Held {
				b.Held[i].Until = max(b.Held[i].Until, now+time.Hour)
			}
			return b.Holders(now)
		}
	}},
	{"takes a prefix for a pattern", "inspect/keys", func(w *ways) {
		w.begins = func(key, prefix string) bool {
			return strings.HasPrefix(key, strings.TrimSuffix(strings.TrimSuffix(prefix, "*"), "%"))
		}
	}},
	{"yields keys that nobody holds any more", "inspect/keys", func(w *ways) {
		w.live = func(*book.Book, time.Duration) bool { return true }
	}},
	{"locks all while it yields keys", "inspect/keys-stopped", wrapped(func(c clerk) driver.Store { return &busy{clerk: c} })},

	{"does not end what it breaks", "break/ends", func(w *ways) {
		w.breaks = func(*book.Book, book.Moment, string) error { return nil }
	}},
	{"does not say that it was broken", "break/reason", func(w *ways) {
		w.renewed(func(_ *book.Book, _ book.Moment, _ driver.Renewal, err error) error {
			if err != nil {
				return driver.ErrLost
			}
			return nil
		})
	}},
	{"breaks by the claim's own id", "break/by-public-id", func(w *ways) {
		breaks := w.breaks
		w.breaks = func(b *book.Book, m book.Moment, id string) error {
			if holds(b, id) {
				id = driver.PublicID(id)
			}
			return breaks(b, m, id)
		}
	}},
	{"breaks whoever came first", "break/the-right-one", func(w *ways) {
		breaks := w.breaks
		w.breaks = func(b *book.Book, m book.Moment, id string) error {
			if len(b.Held) > 0 {
				id = driver.PublicID(b.Held[0].ID)
			}
			return breaks(b, m, id)
		}
	}},
	{"says nothing when there is nothing to break", "break/twice", func(w *ways) {
		breaks := w.breaks
		w.breaks = func(b *book.Book, m book.Moment, id string) error {
			_ = breaks(b, m, id)
			return nil
		}
	}},
	{"breaks the queue with the holder", "break/lets-the-next-in", func(w *ways) {
		breaks := w.breaks
		w.breaks = func(b *book.Book, m book.Moment, id string) error {
			b.Queue = nil
			return breaks(b, m, id)
		}
	}},
	{"breaks only what holds", "break/waiting", func(w *ways) {
		breaks := w.breaks
		w.breaks = func(b *book.Book, m book.Moment, id string) error {
			if slices.ContainsFunc(b.Queue, func(e book.Entry) bool { return driver.PublicID(e.ID) == id }) {
				return driver.ErrLost
			}
			return breaks(b, m, id)
		}
	}},

	{"ends what it cannot read", "format/newer", func(w *ways) {
		meets := w.meets
		w.meets = func(c driver.Claim) error {
			if c.ID == "" { // Break
				return nil
			}
			return meets(c)
		}
	}},
	{"goes on to wait for a claim that it cannot read", "format/newer-meanwhile", func(w *ways) {
		waited, meets := w.waited(), w.meets
		w.meets = func(c driver.Claim) error {
			if waited[c.ID] {
				return nil
			}
			return meets(c)
		}
	}},
	{"takes what it cannot read for gone", "format/newer-meanwhile", func(w *ways) {
		w.meets = func(c driver.Claim) error { return errors.Join(newer.Check(c.Key, 2, 1, newer.Passes), driver.ErrLost) }
	}},

	{"does not tell of what was broken", "notify/break", func(w *ways) {
		w.tells = func(string, book.Entry) bool { return false }
	}},
	{"does not tell of what was broken in the queue", "notify/break-in-line", func(w *ways) {
		w.tells = func(clerk string, e book.Entry) bool { return e.Session == clerk && e.Fence != 0 }
	}},
	{"tells everybody of what was broken", "notify/nothing-else", func(w *ways) {
		w.tells = func(string, book.Entry) bool { return true }
	}},
	{"tells who has stopped listening", "notify/stop", wrapped(func(c clerk) driver.Store { return chatty{c} })},

	{"has no Watch any more", "feature/interfaces", wrapped(func(c clerk) driver.Store { return struct{ driver.Store }{c} })},
	{"has readers that it says it lacks", "feature/no-readers", func(w *ways) { w.lacks = Readers }},
	{"has slots that it says it lacks", "feature/no-slots", func(w *ways) { w.lacks = Slots }},
	{"has tokens that it says it lacks", "feature/no-tokens", func(w *ways) { w.lacks = Tokens }},
	{"lets claims be left that it says cannot be", "feature/no-roam", func(w *ways) { w.lacks = Roam }},
	{"takes a claim that cannot be left for lost", "feature/no-roam", func(w *ways) {
		w.renewed(func(_ *book.Book, _ book.Moment, r driver.Renewal, err error) error {
			if r.Leave {
				return driver.ErrLost
			}
			return err
		})
		w.lacks = Roam
	}},
	{"ends claims that it says do not run out", "feature/no-expiry", func(w *ways) { w.lacks = Expiry }},
	{"keeps claims that it says end with their client", "close/ends-claims", func(w *ways) { w.lacks = Outlive }},
	{"takes its time whatever the context says", "context/acquire", func(w *ways) {
		w.heeds = func(context.Context) error {
			<-time.After(time.Minute)
			return nil
		}
	}},
	{"says that a claim is lost when the context is", "context/renew", wrapped(func(c clerk) driver.Store { return rash{c} })},
	{"says that it released when the context had ended", "context/release", wrapped(func(c clerk) driver.Store { return boasting{c} })},
	{"keeps what it gave no answer for", "context/cut-short", wrapped(func(c clerk) driver.Store { return forgetful{c} })},
	{"ends a claim with the context of its call", "context/of-the-call-only", wrapped(func(c clerk) driver.Store { return &bound{clerk: c} })},
	{"waits for its server until the deadline", "outage/silent", func(w *ways) {
		w.hangs = func(ctx context.Context) error {
			limit := time.Minute
			if at, ok := ctx.Deadline(); ok {
				limit = time.Until(at)
			}
			<-time.After(limit)
			return context.DeadlineExceeded
		}
	}},
	{"grants by itself while its server is silent", "outage/silent", func(w *ways) {
		w.hangs = func(context.Context) error { return nil }
	}},
	{"gives up with the error of a context that goes on", "outage/own-limit", func(w *ways) {
		w.hangs = func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return context.DeadlineExceeded
		}
	}},
	{"keeps to itself why its server cannot be reached", "outage/refused", func(w *ways) {
		w.refused = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}},
	{"waits for its server when it closes", "outage/close", wrapped(func(c clerk) driver.Store { return lingering{c} })},
	{"ends claims when a client closes", "close/leaves-claims", func(w *ways) {
		w.close = func(books map[string]*book.Book, _ string) { clear(books) }
	}},
	{"cannot close while it holds claims", "close/while-called", wrapped(func(c clerk) driver.Store { return holding{c} })},
	{"closes for all clients at once", "close/one-client", func(w *ways) {
		w.close = func(books map[string]*book.Book, _ string) { clear(books) }
	}},

	{"answers no claims with an error", "batch/none", func(w *ways) {
		w.errs = func(errs []error) []error {
			if len(errs) == 0 {
				return []error{errReset}
			}
			return errs
		}
	}},
	{"answers for those that failed", "batch/renew", func(w *ways) {
		w.errs = func(errs []error) []error {
			failed := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
			if len(failed) == 0 {
				return nil
			}
			return failed
		}
	}},
	{"answers in an order of its own", "batch/release", func(w *ways) {
		w.errs = func(errs []error) []error {
			slices.Reverse(errs)
			return errs
		}
	}},
	{"answers once for all claims on a key", "batch/one-key", func(w *ways) {
		w.errs = func(errs []error) []error {
			for i := range errs {
				errs[i] = errs[0]
			}
			return errs
		}
	}},
	{"takes no slice for an answer when all are gone", "batch/all-gone", func(w *ways) {
		w.errs = func(errs []error) []error {
			if len(errs) > 1 && !slices.Contains(errs, nil) {
				return nil
			}
			return errs
		}
	}},
	{"renews beside a release", "together/release-and-renew", func(w *ways) {
		last := make(map[string]book.Entry)
		w.releasing(func(b *book.Book, r *driver.Release) {
			if e := entry(b, r.ID); e != nil {
				last[r.ID] = *e
			}
		})
		w.renewing(func(b *book.Book, m book.Moment, r *driver.Renewal) {
			if e, ok := last[r.ID]; ok && len(b.Held) == 0 && e.Asked == m.Now {
				b.Held = append(b.Held, e)
			}
		})
	}},
	{"forgets a release now and then", "together/all-methods", func(w *ways) {
		n := 0
		release := w.release
		w.release = func(b *book.Book, m book.Moment, r driver.Release) error {
			if n++; n%10 == 0 && holds(b, r.ID) {
				return nil
			}
			return release(b, m, r)
		}
	}},
	{"grants to two of many now and then", "history/crashes", func(w *ways) {
		n := 0
		w.before(func(b *book.Book, _ *book.Moment, _ *driver.Ask) {
			if n++; n%10 == 0 && len(b.Held) == 1 {
				b.Held[0].Weight, b.Queue = 1, nil
			}
		})
	}},
	{"lets one in twenty pass the queue", "history/calm", func(w *ways) {
		n := 0
		w.passing(func(driver.Ask) bool { n++; return n%20 == 0 })
	}},
	{"lets one in forty wait for ever", "history/calm", func(w *ways) {
		queued := make(map[string]int) // by id: as the how many-th
		acquire := w.acquire
		w.acquire = func(b *book.Book, m book.Moment, a driver.Ask) (driver.Grant, error) {
			if _, known := queued[a.ID]; a.Wait && !known {
				queued[a.ID] = len(queued)
			}
			if a.Wait && queued[a.ID]%40 == 39 {
				return driver.Grant{}, nil
			}
			return acquire(b, m, a)
		}
	}},
	{"loses one wake in twenty", "history/calm", func(w *ways) {
		n := 0
		w.unhears(func(*book.Book, book.Push) bool { n++; return n%20 == 0 })
	}},
}

// showing changes the answer of Holders.
func (w *ways) showing(spoil func(*driver.Holder, book.Entry)) {
	holders := w.holders
	w.holders = func(b *book.Book, now time.Duration) []driver.Holder {
		list := holders(b, now)
		for i := range list {
			for _, e := range slices.Concat(b.Held, b.Queue) {
				if driver.PublicID(e.ID) == list[i].ID {
					spoil(&list[i], e)
				}
			}
		}
		return list
	}
}

// A lingering clerk closes with its server's answer, or after a minute.
type lingering struct{ clerk }

func (c lingering) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = c.reaches(ctx)
	return c.clerk.Close()
}
