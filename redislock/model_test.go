package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// TestScriptsFollowTheBook does the same things to the scripts and to package
// book, which states the rules in Go, and compares what they say. Nothing runs
// out meanwhile, so that the clocks do not matter: a waiter that says nothing loses its
// place, and where that comes near the steps end.
func TestScriptsFollowTheBook(t *testing.T) {
	store := opening(servers.StartRedis(t).URL()).Open(t)
	defer store.Close()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := &pair{T: t, began: time.Now(), random: rand.New(rand.NewPCG(seed, 1)), redis: store, key: fmt.Sprint("key ", seed)}
			const steps = 120
			for n := range steps {
				p.step()
				if !p.timely() {
					unproved.Logf(t, "all after step %d of %d", n, steps)
					return
				}
				if p.wrong != "" {
					t.Fatalf("step %d: %s", n, p.wrong)
				}
			}
		})
	}
}

// A pair is the two that are compared.
type pair struct {
	*testing.T
	began  time.Time
	random *rand.Rand
	redis  driver.Store
	book   book.Book
	now    time.Duration
	key    string
	asks   []driver.Ask
	wrong  string // the first that was not the same
}

// timely reports whether no waiter has come near the end of its place.
func (p *pair) timely() bool {
	return time.Since(p.began) < (driver.Claim{TTL: time.Hour}).Alive()*9/10
}

func (p *pair) moment() book.Moment {
	p.now += time.Microsecond
	return book.Moment{Now: p.now, Wall: p.now.Microseconds()}
}

func (p *pair) step() {
	ctx := context.Background()
	a := p.choose()
	c := a.Claim
	switch p.random.IntN(10) {
	case 0:
		r := driver.Renewal{Claim: c}
		p.same("Renew of", c, first(p.redis.Renew(ctx, []driver.Renewal{r})), p.book.Renew(p.moment(), r))
	case 1, 2, 3:
		r := driver.Release{Claim: c, Late: p.random.IntN(3) == 0}
		want := p.book.Release(p.moment(), r)
		if want != nil {
			want = driver.ErrLost // The book says why, which only Renew needs to.
		}
		p.same("Release of", c, first(p.redis.Release(ctx, []driver.Release{r})), want)
	case 4:
		id := driver.PublicID(c.ID)
		_, want := p.book.Break(p.moment(), id)
		p.same("Break of", c, p.redis.(driver.Inspector).Break(ctx, p.key, id), want)
	default:
		got, err := p.redis.Acquire(ctx, a)
		want, err2 := p.book.Acquire(p.moment(), a, "")
		p.same("Acquire of", c, err, err2)
		// The scripts give fewer tokens if many are asked for.
		if got.OK != want.OK || got.Span > want.Span || got.OK && got.Span < 1 || (got.Holder.ID == "") != (want.Holder.ID == "") {
			p.differ("Acquire of %q: got %+v, want %+v", c.Note, got, want)
		}
	}
	holders, err := p.redis.(driver.Inspector).Holders(ctx, p.key)
	p.same("Holders after a call of", c, err, nil)
	if got, want := shown(holders), shown(p.book.Holders(p.now)); !slices.Equal(got, want) {
		p.differ("the key shows %q, want %q", got, want)
	}
}

// choose returns a request that was made before, or a new one.
func (p *pair) choose() driver.Ask {
	if n := len(p.asks); n > 0 && p.random.IntN(5) > 0 {
		return p.asks[max(n-8, 0)+p.random.IntN(min(n, 8))]
	}
	name := fmt.Sprint("claim ", len(p.asks))
	c := driver.Claim{
		Key: p.key, ID: p.key + name, Note: name, TTL: time.Hour, Weight: driver.MaxWeight, Limit: driver.MaxWeight,
	}
	a := driver.Ask{Wait: p.random.IntN(3) > 0, Span: 1 + p.random.IntN(3)}
	switch p.random.IntN(3) {
	case 0:
		c.Weight = 1
	case 1:
		c.Limit = 1 + p.random.Int64N(4)
		c.Weight = 1 + p.random.Int64N(c.Limit)
	}
	a.Claim = c
	p.asks = append(p.asks, a)
	return a
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
		p.wrong = fmt.Sprintf(format, args...)
	}
}

// shown tells of those that hold, sorted, and of those in the queue, in order.
func shown(holders []driver.Holder) []string {
	var held, line []string
	for _, h := range holders {
		text := fmt.Sprintf("%s %d/%d", h.Note, h.Weight, h.Limit)
		if h.Waiting {
			line = append(line, "waiting "+text)
		} else {
			held = append(held, text)
		}
	}
	slices.Sort(held)
	return slices.Concat(held, line)
}

func first(errs []error) error {
	if errs == nil {
		return nil
	}
	return errs[0]
}
