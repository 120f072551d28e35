// Package goldentest checks that a store understands the records of an earlier release.
//
// The testdata of a store has its records raw, as this release writes them, on two keys:
// "holder" and "queue". A test puts the records into the engine, and calls [Holder] and
// [Queue]. A further test of each store compares what this release writes with testdata. So
// a change of a format is noticed. The change then needs a new number, and a release that
// reads the new format before the release that writes the format.
package goldentest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// placeholder stands in testdata for a time in microseconds, such as {now+3600000000}.
var placeholder = regexp.MustCompile(`\{now([+-]\d+)?\}`)

// Fill replaces the placeholders in a text by times.
func Fill(text string, now int64) string {
	return placeholder.ReplaceAllStringFunc(text, func(word string) string {
		offset, _ := strconv.ParseInt(placeholder.FindStringSubmatch(word)[1], 10, 64) // 0 for none
		return strconv.FormatInt(now+offset, 10)
	})
}

// Read returns a file of testdata, filled.
func Read(t testing.TB, name string, now int64) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return Fill(string(text), now)
}

// A user calls a store, and fails the test if a call does not end as it has to.
type user struct {
	testing.TB
	store driver.Store
	key   string
}

func (u user) claim(id string, weight int64) driver.Claim {
	return driver.Claim{Key: u.key, ID: id, Owner: "test", Weight: weight, Limit: driver.MaxWeight, TTL: time.Hour}
}

func (u user) ask(a driver.Ask, want bool) driver.Grant {
	u.Helper()
	g, err := u.store.Acquire(bounded(u), a)
	if err != nil || g.OK != want {
		u.Fatalf("Acquire of %q, %q: %+v, %v; want OK %t", a.Key, a.ID, g, err, want)
	}
	return g
}

// acquire asks without waiting, and for one token.
func (u user) acquire(c driver.Claim, want bool) driver.Grant {
	u.Helper()
	return u.ask(driver.Ask{Claim: c, Span: 1}, want)
}

func (u user) renew(r driver.Renewal) {
	u.Helper()
	u.did("Renew", r.Claim, u.store.Renew(bounded(u), []driver.Renewal{r}))
}

func (u user) release(c driver.Claim) {
	u.Helper()
	u.did("Release", c, u.store.Release(bounded(u), []driver.Release{{Claim: c}}))
}

func (u user) did(call string, c driver.Claim, errs []error) {
	u.Helper()
	if err := errors.Join(errs...); err != nil {
		u.Fatalf("%s of %q, %q: %v", call, c.Key, c.ID, err)
	}
}

// bounded returns the context of calls that hang only by a mistake.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Holder expects a record of the key "holder": the exclusive claim "holder" of the owner
// "me" with the note "a note" holds. fence is the token of the claim, and last the last
// token of its span.
func Holder(t testing.TB, s driver.Store, fence, last uint64) {
	t.Helper()
	u := user{t, s, "holder"}
	holder, next := u.claim("holder", driver.MaxWeight), u.claim(rand.Text(), driver.MaxWeight)
	if h := u.acquire(next, false).Holder; h.Fence != fence || h.Owner != "me" || h.Note != "a note" {
		t.Errorf("the holder is told as %+v, want %d, me, a note", h, fence)
	}
	u.renew(driver.Renewal{Claim: holder})
	u.release(holder)
	if g := u.acquire(next, true); g.Fence <= last {
		t.Errorf("the next claim has token %d, and the record had given %d", g.Fence, last)
	}
}

// Queue expects a record of the key "queue": the readers "reader" and "left" hold with the
// same token, the latter after its last renewal. The exclusive claim "waiter" waits. The
// ids "late" and "broken" have tombs.
func Queue(t testing.TB, s driver.Store, fence uint64) {
	t.Helper()
	u := user{t, s, "queue"}
	holders, err := s.(driver.Inspector).Holders(bounded(t), u.key)
	if err != nil {
		t.Fatal(err)
	}
	if len(holders) != 3 || holders[0].Fence != fence || holders[1].Fence != fence || !holders[2].Waiting {
		t.Errorf("told %+v, want two readers with token %d and a waiter", holders, fence)
	}
	u.acquire(u.claim(rand.Text(), 1), false) // a reader does not pass the waiter
	u.readers(driver.Ask{Claim: u.claim("waiter", driver.MaxWeight), Wait: true, Span: 1}, fence)
}

// Readers is [Queue] for a store without a queue: nobody waits.
func Readers(t testing.TB, s driver.Store, fence uint64) {
	t.Helper()
	u := user{t, s, "queue"}
	u.readers(driver.Ask{Claim: u.claim(rand.Text(), driver.MaxWeight), Span: 1}, fence)
}

// readers ends the readers, after which the writer holds, and then ends the writer.
func (u user) readers(writer driver.Ask, fence uint64) {
	u.Helper()
	u.ask(writer, false)
	u.renew(driver.Renewal{Claim: u.claim("reader", 1)})
	u.release(u.claim("reader", 1))
	u.ask(writer, false)
	u.release(u.claim("left", 1))
	if g := u.ask(writer, true); g.Fence <= fence {
		u.Errorf("the writer has token %d, and the readers had %d", g.Fence, fence)
	}
	u.release(writer.Claim)
	u.acquire(u.claim("late", driver.MaxWeight), false)
	u.acquire(u.claim("broken", driver.MaxWeight), false)
	u.acquire(u.claim(rand.Text(), driver.MaxWeight), true)
}

// Write makes a store write the records of "holder" and "queue". The waiter watches, if the
// store can push.
func Write(t testing.TB, s driver.Store) {
	t.Helper()
	u := user{t, s, "holder"}
	holder := u.claim("holder", driver.MaxWeight)
	holder.Owner, holder.Note = "me", "a note"
	u.ask(driver.Ask{Claim: holder, Span: 3}, true)

	u.key = "queue"
	for _, id := range []string{"broken", "reader", "left"} {
		u.acquire(u.claim(id, 1), true)
	}
	u.renew(driver.Renewal{Claim: u.claim("left", 1), Leave: true})
	ctx := bounded(t)
	if err := s.(driver.Inspector).Break(ctx, u.key, driver.PublicID("broken")); err != nil {
		t.Fatal(err)
	}
	late := []driver.Release{{Claim: u.claim("late", 1), Late: true}}
	if errs := s.Release(ctx, late); len(errs) != 1 || !errors.Is(errs[0], driver.ErrLost) {
		t.Fatalf("Release of a claim that is not there: %v", errs)
	}
	waiter := u.claim("waiter", driver.MaxWeight)
	if w, ok := s.(driver.Watcher); ok {
		stop, err := w.Watch(ctx, waiter, func(driver.Grant) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	u.ask(driver.Ask{Claim: waiter, Wait: true, Span: 1}, false)
}

// Shape returns a text without its times and placeholders, to compare records with testdata.
func Shape(text string) string {
	return regexp.MustCompile(`\{now([+-]\d+)?\}|\b\d{16}\b`).ReplaceAllString(text, "{now}")
}
