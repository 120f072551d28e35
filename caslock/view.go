package caslock

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A view is a page as a call sees it, and what the call changes.
type view struct {
	page    *page
	version string
	proved  bool // no later page is known, and no swap of this process may still replace this page
	current bool // the register has just shown this page; otherwise the page is remembered

	at     book.Moment
	book   *book.Book
	sights sights                   // as of the page
	pauses map[string]time.Duration // between the looks of each claim
	places map[string]time.Duration // until when each place lasts, on the page
	look   time.Duration            // 0: the register notifies
	moved  time.Duration            // when this process first saw the holders of the page
}

// open makes the book of the page, at the time m.
func (v *view) open(m book.Moment) {
	v.at = m
	v.book = v.page.book(v.sights, m.Now)
	v.pauses, v.places = make(map[string]time.Duration), make(map[string]time.Duration)
	for i := range v.page.Queue {
		if c := &v.page.Queue[i]; c.Pause != 0 {
			v.pauses[c.ID] = time.Duration(c.Pause) * time.Microsecond
			v.places[c.ID] = v.book.Queue[i].Until
		}
	}
}

// next is the page after the call, with a new number.
func (v *view) next(seq uint64) *page {
	nonce := rand.Uint64()
	return &page{
		Format: format, Key: v.page.Key, Seq: seq, Nonce: nonce,
		claims: write(v.book, &v.page.claims, v.sights, v.pauses, nonce, v.at.Now),
	}
}

func (v *view) acquire(a driver.Ask) (driver.Grant, error) {
	g, err := v.book.Acquire(v.at, a, "")
	v.handOver()
	g.Floor = 0 // A wake-up never brings a grant.
	if !g.OK {
		g.Left, g.Holder.Left = driftless(g.Left), driftless(g.Holder.Left)
	}
	if err != nil {
		return g, err
	}
	if i := index(v.book.Held, a.ID); g.OK && v.book.Held[i].Left && !v.sights[a.ID].own {
		g.TTL = 1 // This process does not know when the claim was left.
	}
	i := index(v.book.Queue, a.ID)
	if i < 0 {
		return g, nil
	}
	kept := lasts(v.look, a.Claim, i)
	if g.Kept = 0; kept > a.Alive() {
		g.Kept = kept
	}
	v.book.Queue[i].Until = v.at.Now + kept
	if v.look == 0 {
		return g, nil
	}
	g.Pause, g.Next = v.look*time.Duration(1+i), i == 0
	v.places[a.ID] = v.at.Now + kept
	// The longest pause before the next request, which is due after a third of kept.
	v.pauses[a.ID] = pause(v.look, a.Claim, i, v.at.Now-v.moved+kept/3)
	return g, nil
}

func (v *view) renew(r driver.Renewal) error {
	err := v.book.Renew(v.at, r)
	v.handOver()
	return err
}

func (v *view) release(r driver.Release) error {
	err := v.book.Release(v.at, r)
	v.handOver()
	return err
}

func (v *view) breaks(public string) error {
	_, err := v.book.Break(v.at, public)
	v.handOver()
	return err
}

// handOver lets the claims that the last call has granted from the queue stand until their
// owners have looked, since nobody notifies the owners: for three pauses, but not longer than
// their places, so that dead waiters block a key together for as long as their places last. It
// follows each call of the book, which forgets the grants of the call before.
func (v *view) handOver() {
	for _, p := range v.book.Pushed {
		i := index(v.book.Held, p.ID)
		if i < 0 || v.pauses[p.ID] == 0 {
			continue
		}
		e := &v.book.Held[i]
		looks := v.at.Now + 3*v.pauses[p.ID]
		e.Until = max(v.at.Now+driver.Claim{TTL: e.TTL}.Alive(), min(looks, v.places[p.ID]))
		delete(v.pauses, p.ID)
	}
}

func index(entries []book.Entry, id string) int {
	return slices.IndexFunc(entries, func(e book.Entry) bool { return e.ID == id })
}

// clone returns a view of the same page, to try a call without effect.
func (v *view) clone() *view {
	c := *v
	c.sights = maps.Clone(v.sights)
	c.open(v.at)
	return &c
}
