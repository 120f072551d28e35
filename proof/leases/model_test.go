package leases

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// The tables follow the rules that package book states.
func TestModel(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		s := open(t, create(t, e.shared.URL()))
		seeds := uint64(24)
		if testing.Short() {
			seeds = 4
		}
		done := 0
		for seed := range seeds {
			done += follow(t, s, seed, 60)
		}
		if done == 0 {
			t.Error("no step was compared in time")
		}
	})
}

// follow does the same things to a store and to package book, and compares what
// they say. Nothing runs out meanwhile, so that the clocks do not matter: a waiter that
// says nothing loses its place, and where that comes near the steps end. It returns how
// many steps were compared.
func follow(t *testing.T, s store, seed uint64, steps int) (done int) {
	t.Helper()
	p := &pair{T: t, seed: seed, began: time.Now(), random: mathrand.New(mathrand.NewPCG(seed, 1)), store: s, books: make(map[string]*book.Book)}
	for range 3 {
		key := rand.Text()
		p.keys = append(p.keys, key)
		p.books[key] = &book.Book{}
	}
	for p.steps = range steps {
		if !p.step() {
			unproved.Logf(t, "seed %d: all after step %d of %d", seed, p.steps, steps)
			return p.steps
		}
	}
	return steps
}

// A pair is the two that are compared, with a few keys.
type pair struct {
	*testing.T
	seed   uint64
	steps  int
	random *mathrand.Rand
	began  time.Time
	store  store
	keys   []string
	books  map[string]*book.Book
	claims []driver.Ask
	wrong  string // the first that was not the same
}

func moment() book.Moment {
	now := time.Now().UnixMicro()
	return book.Moment{Now: time.Duration(now) * time.Microsecond, Wall: now}
}

// step does one thing to both. It reports whether there is time for more. A difference
// counts only if no place was about to expire during the comparison.
func (p *pair) step() bool {
	defer func() {
		if p.wrong != "" && p.timely() {
			p.Fatal(p.wrong)
		}
	}()
	p.both()
	return p.timely()
}

// timely reports whether no waiter has come near the end of its place.
func (p *pair) timely() bool {
	return time.Since(p.began) < (driver.Claim{TTL: time.Hour}).Alive()*9/10
}

func (p *pair) both() {
	ctx, claim := p.Context(), p.choose()
	b := p.books[claim.Key]
	switch p.random.IntN(10) {
	case 0, 1:
		rs := asks.Renewals(p.several(claim)...)
		for i := range rs {
			rs[i].Leave = p.random.IntN(6) == 0
			if p.random.IntN(4) == 0 {
				rs[i].Fence = uint64(moment().Wall + p.random.Int64N(3)*time.Hour.Microseconds())
			}
		}
		for i, err := range p.store.Renew(ctx, rs) {
			p.same("Renew of", rs[i].Claim, err, p.books[rs[i].Key].Renew(moment(), rs[i]))
		}
	case 2, 3, 4:
		rs := asks.Releases(p.several(claim)...)
		for i := range rs {
			rs[i].Late = p.random.IntN(3) == 0
		}
		for i, err := range p.store.Release(ctx, rs) {
			want := p.books[rs[i].Key].Release(moment(), rs[i])
			if want != nil {
				want = driver.ErrLost // The book says why, which only Renew needs to.
			}
			if err != nil && errors.Is(err, driver.ErrLost) {
				err = driver.ErrLost
			}
			p.same("Release of", rs[i].Claim, err, want)
		}
	case 5:
		id := driver.PublicID(claim.ID)
		_, want := b.Break(moment(), id)
		p.same("Break of", claim.Claim, p.store.Break(ctx, claim.Key, id), want)
	default:
		if p.random.IntN(6) == 0 {
			claim.Fence = uint64(moment().Wall + p.random.Int64N(3)*time.Hour.Microseconds())
		}
		got, err := p.store.Acquire(ctx, claim)
		want, err2 := b.Acquire(moment(), claim, "")
		p.same("Acquire of", claim.Claim, err, err2)
		if got.OK != want.OK || got.Span != want.Span || got.Holder.ID != want.Holder.ID {
			p.differ("Acquire of %q: got %+v, want %+v", claim.Note, got, want)
		}
	}
	for _, key := range p.keys {
		holders, err := p.store.Holders(ctx, key)
		succeed(p, err)
		if got, want := shown(holders), shown(p.books[key].Holders(moment().Now)); !slices.Equal(got, want) {
			p.differ("the key shows\n%q, want\n%q", got, want)
		}
	}
}

// several returns the claim, mostly with others.
func (p *pair) several(claim driver.Ask) []driver.Ask {
	cs := []driver.Ask{claim}
	for range p.random.IntN(5) {
		if c := p.claims[p.random.IntN(len(p.claims))]; !slices.ContainsFunc(cs, func(o driver.Ask) bool { return o.ID == c.ID }) {
			cs = append(cs, c)
		}
	}
	// Of each key in the order in which they are given, and keys in any.
	return cs
}

// choose returns a claim that was used before, or a new one.
func (p *pair) choose() driver.Ask {
	if n := len(p.claims); n > 0 && p.random.IntN(5) > 0 {
		return p.claims[max(n-12, 0)+p.random.IntN(min(n, 12))]
	}
	name := fmt.Sprintf("claim %d \\ \x00 '\"`$1?", len(p.claims))
	c := driver.Ask{Claim: driver.Claim{
		Key: p.keys[p.random.IntN(len(p.keys))], ID: rand.Text(), Note: name, Owner: "🔒", TTL: time.Hour,
		Weight: driver.MaxWeight, Limit: driver.MaxWeight,
	}, Wait: p.random.IntN(3) > 0, Span: 1 + p.random.IntN(3)}
	switch p.random.IntN(3) {
	case 0:
		c.Weight = 1
	case 1:
		c.Limit = 1 + p.random.Int64N(4)
		c.Weight = 1 + p.random.Int64N(c.Limit)
	}
	p.claims = append(p.claims, c)
	return c
}

func (p *pair) same(what string, c driver.Claim, got, want error) {
	p.Helper()
	for _, kind := range []error{driver.ErrLost, driver.ErrBroken, driver.ErrInvalid} {
		if errors.Is(got, kind) != errors.Is(want, kind) || (got == nil) != (want == nil) {
			p.differ("%s %q: got %v, want %v", what, c.Note, got, want)
		}
	}
}

// differ notes what is not the same.
func (p *pair) differ(format string, args ...any) {
	if p.wrong == "" {
		p.wrong = fmt.Sprintf("seed %d, step %d: ", p.seed, p.steps) + fmt.Sprintf(format, args...)
	}
}

// shown tells of those that hold, in the order of their tokens, and of those in
// line. Of the tokens it tells which are the same.
func shown(holders []driver.Holder) (list []string) {
	held := slices.DeleteFunc(slices.Clone(holders), func(h driver.Holder) bool { return h.Waiting })
	slices.SortStableFunc(held, func(a, b driver.Holder) int { return cmp.Or(cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.ID, b.ID)) })
	token, last := 0, uint64(0)
	for _, h := range held {
		if h.Fence != last {
			token, last = token+1, h.Fence
		}
		list = append(list, fmt.Sprintf("%s of %s: %d/%d, token no. %d", h.Note, h.Owner, h.Weight, h.Limit, token))
	}
	for _, h := range holders {
		if h.Waiting {
			list = append(list, fmt.Sprintf("%s of %s: %d/%d, waiting", h.Note, h.Owner, h.Weight, h.Limit))
		}
	}
	return list
}
