package sqlstore

import (
	"context"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// Renew implements [driver.Store]. Claims that are alone on their key are renewed in one
// statement for all claims with the same TTL.
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	b := newBatch(len(rs))
	for i := range rs {
		b.claims[i].Claim = &rs[i].Claim
	}
	simple := func(i int) (time.Duration, bool) {
		r := &rs[i]
		return r.TTL, r.Fence == 0 && !r.Leave && r.TTL > 0
	}
	for ttl, some := range b.alike(simple) {
		b.done(s.renewSole(ctx, some, ttl))
	}
	return b.rest(ctx, s, func(m book.Moment, b *book.Book, i int) (change, error) {
		before := known(b, rs[i].ID, m.Now)
		err := b.Renew(m, rs[i])
		return change{keep: err == nil, extend: extended(before, b, rs[i].ID)}, err
	})
}

// Release implements [driver.Store]. Claims that are alone on their key are released in
// one statement.
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	b := newBatch(len(rs))
	for i := range rs {
		r := &rs[i]
		s.waiting.Delete(r.ID)
		b.claims[i] = pending{Claim: &r.Claim, late: r.Late}
	}
	simple := func(i int) (time.Duration, bool) { return 0, !rs[i].Late && s.crowds.of(rs[i].Key).Load() == 0 }
	for _, some := range b.alike(simple) {
		b.done(s.free(ctx, some))
	}
	return b.rest(ctx, s, func(m book.Moment, b *book.Book, i int) (change, error) {
		behind := slices.IndexFunc(b.Queue, func(e book.Entry) bool { return e.ID == rs[i].ID }) > 0
		err := b.Release(m, rs[i])
		done := change{keep: err == nil || rs[i].Late, freed: err == nil}
		if behind && err == nil && !rs[i].Late {
			done.leave = rs[i].ID
		}
		return done, err
	})
}

// renewSole renews the sole claims among cs, and returns their keys.
func (s *Store) renewSole(ctx context.Context, cs []*driver.Claim, ttl time.Duration) (kept map[string]bool, err error) {
	if s.dialect.returning {
		args := append([]any{micros(ttl)}, s.lists(cs)...)
		return s.named(ctx, expand(renewRows, width(len(cs)))+" RETURNING name", args)
	}
	renew := func(cs []*driver.Claim) (int, error) {
		if len(cs) == 1 {
			return s.renewAll(ctx, renewRows, cs, ttl)
		}
		return s.renewBriefly(ctx, cs, ttl)
	}
	n, err := renew(cs)
	if len(cs) > 1 && s.locked(err) {
		return s.renewUnlocked(ctx, cs, ttl)
	}
	switch {
	case err != nil || n == 0:
		return nil, err
	case n == len(cs):
		return names(cs), nil
	}
	// Some claims are not alone. The statement says how many it has renewed, and not which. An
	// end in a row proves nothing, because a late write of an earlier call may have set the end. So
	// the statement is sent again for the claims that are alone, together and then in parts,
	// because a part may have changed meanwhile.
	alone, err := s.named(ctx, expand(soleRows, width(len(cs))), s.lists(cs))
	if err != nil {
		return nil, err
	}
	cs = slices.DeleteFunc(slices.Clone(cs), func(c *driver.Claim) bool { return !alone[c.Key] })
	kept = make(map[string]bool)
	for _, part := range []int{max(len(cs), 1), solePart} {
		for some := range slices.Chunk(cs, part) {
			if n, err = renew(some); err != nil {
				return kept, err
			}
			if n == len(some) {
				maps.Copy(kept, names(some))
			}
		}
		if len(kept) == len(cs) {
			break
		}
	}
	return kept, nil
}

// renewAll returns how many of the claims a statement has renewed.
func (s *Store) renewAll(ctx context.Context, text string, cs []*driver.Claim, ttl time.Duration) (int, error) {
	args := append([]any{micros(ttl)}, s.lists(cs)...)
	n, err := s.exec(ctx, expand(text, width(len(cs))), false, args...)
	return int(n), err
}

// renewBriefly is renewAll, and a locked row ends the statement soon, because the other rows must
// not wait.
func (s *Store) renewBriefly(ctx context.Context, cs []*driver.Claim, ttl time.Duration) (int, error) {
	return s.renewAll(context.WithValue(ctx, several{}, true), s.dialect.brief+renewRows, cs, ttl)
}

// several is the context key of a statement for several rows. An error that concerns one of the rows
// ends it.
type several struct{}

// locked reports whether an error of a statement concerns one of its rows, as if the row was locked
// for too long.
func (s *Store) locked(err error) bool {
	return err != nil && s.dialect.errors[s.opts.Code(err)].alone
}

// renewUnlocked renews the sole claims among several whose rows are not locked, and returns their
// keys. It halves the claims until each statement has renewed all its claims, or none.
func (s *Store) renewUnlocked(ctx context.Context, cs []*driver.Claim, ttl time.Duration) (kept map[string]bool, err error) {
	kept = make(map[string]bool)
	half := func(cs []*driver.Claim) [][]*driver.Claim {
		return [][]*driver.Claim{cs[:len(cs)/2], cs[len(cs)/2:]}
	}
	for parts := half(cs); len(parts) > 0; parts = parts[1:] {
		part := parts[0]
		n, err := s.renewBriefly(ctx, part, ttl)
		switch {
		case err != nil && !s.locked(err):
			return kept, err
		case err == nil && n == len(part):
			maps.Copy(kept, names(part))
		case (err != nil || n > 0) && len(part) > 1:
			parts = append(parts, half(part)...)
		}
	}
	return kept, nil
}

// solePart is the number of claims in a part.
const solePart = 32

// releaseSole releases the sole claims among cs, and returns their keys. An engine without
// RETURNING gets a statement for each claim.
func (s *Store) releaseSole(ctx context.Context, cs []*driver.Claim) (ended map[string]bool, err error) {
	if s.dialect.returning {
		return s.named(ctx, expand(releaseRows, width(len(cs)))+" RETURNING name", s.lists(cs))
	}
	ended = make(map[string]bool)
	for i, c := range cs {
		n, err := s.exec(ctx, expand(releaseRows, 1), false, s.lists(cs[i:i+1])...)
		if err != nil {
			return ended, err
		}
		ended[c.Key] = n > 0
	}
	return ended, nil
}

// named runs a statement that returns names, and returns the names.
func (s *Store) named(ctx context.Context, text string, args []any) (map[string]bool, error) {
	names, err := query(ctx, s, text, false, args, column[string])
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool, len(names))
	for _, name := range names {
		found[unescape(name)] = true
	}
	return found, nil
}

// width is the number of parameters for a list of n: a power of two, because clients
// cache each text that was sent.
func width(n int) int { return 1 << bits.Len(uint(n-1)) }

// lists returns the keys and the ids, the last key and id repeated up to width.
func (s *Store) lists(cs []*driver.Claim) []any {
	n := width(len(cs))
	args := make([]any, 2*n)
	for i := range n {
		c := cs[min(i, len(cs)-1)]
		args[i], args[n+i] = s.parameter(escape(c.Key)), s.parameter(escape(c.ID))
	}
	return args
}

func names(cs []*driver.Claim) map[string]bool {
	all := make(map[string]bool, len(cs))
	for _, c := range cs {
		all[c.Key] = true
	}
	return all
}

// A batch is the claims of one call and their outcomes.
type batch struct {
	claims []pending
	errs   []error
	group  []int // indexes of the last group
}

// A pending is a claim of a batch.
type pending struct {
	*driver.Claim
	late bool // released because its Acquire was not answered
	over bool // nothing is left to do
}

func newBatch(n int) *batch {
	return &batch{claims: make([]pending, n), errs: make([]error, n)}
}

// alike yields groups of claims on different keys. For the indexes of a group, of returns
// the same value.
func (b *batch) alike(of func(i int) (time.Duration, bool)) func(func(time.Duration, []*driver.Claim) bool) {
	groups := make(map[time.Duration][]int)
	times := make(map[string]int, len(b.claims))
	for i := range b.claims {
		times[b.claims[i].Key]++
	}
	for i := range b.claims {
		if value, ok := of(i); ok && times[b.claims[i].Key] == 1 {
			groups[value] = append(groups[value], i)
		}
	}
	return func(yield func(time.Duration, []*driver.Claim) bool) {
		for value, group := range groups {
			b.group = group
			cs := make([]*driver.Claim, len(group))
			for n, i := range group {
				cs[n] = b.claims[i].Claim
			}
			if !yield(value, cs) {
				return
			}
		}
	}
}

// done records the outcome of the last group: the settled claims by key, and an error
// that leaves the rest unknown.
func (b *batch) done(settled map[string]bool, err error) {
	for _, i := range b.group {
		c := &b.claims[i]
		c.over = err != nil || settled[c.Key]
		if !settled[c.Key] {
			b.errs[i] = err
		}
	}
}

// maxKeys is the number of keys of a batch that are handled at a time.
const maxKeys = 4

// late reports whether a claim of the group is a late release.
func (b *batch) late(group []int) bool {
	return slices.ContainsFunc(group, func(i int) bool { return b.claims[i].late })
}

// decideGroup is decide for a group of claims. The cause that delayed an Acquire delays a
// late release, too. So a late release takes one of the slots of Acquire, not the
// connection that Acquire leaves to renewals.
func (s *Store) decideGroup(ctx context.Context, key string, load loader, late bool, r rule) error {
	if late {
		leave, err := s.calls.Slot(ctx)
		if err != nil {
			return err
		}
		defer leave()
	}
	return s.decide(ctx, key, load, r)
}

// rest applies a rule to the indexes of the remaining claims, key by key, and returns the
// errors of all claims.
func (b *batch) rest(ctx context.Context, s *Store, do func(m book.Moment, b *book.Book, i int) (change, error)) []error {
	keys := make(map[string][]int)
	for i := range b.claims {
		if !b.claims[i].over {
			keys[b.claims[i].Key] = append(keys[b.claims[i].Key], i)
		}
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, maxKeys)
	for key, group := range keys {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			err := s.decideGroup(ctx, key, s.glance(b.claims[group[0]].ID), b.late(group), func(m book.Moment, bk *book.Book) (all change, err error) {
				var pushed []book.Push // each call of the book forgets those of the call before
				for n, i := range group {
					var one change
					if one, b.errs[i] = do(m, bk, i); n > 0 {
						one = change{keep: all.keep || one.keep, freed: all.freed || one.freed}
					}
					one.gone = all.gone || b.errs[i] != nil
					all, pushed = one, append(pushed, bk.Pushed...)
				}
				bk.Pushed = pushed
				return all, nil
			})
			if err == nil {
				return
			}
			for _, i := range group {
				b.errs[i] = err
			}
		})
	}
	running.Wait()
	return b.errs
}
