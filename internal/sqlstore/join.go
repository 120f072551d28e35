package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// A loader reads the row of a key, and begins the decision.
type loader func(ctx context.Context, key string) (decision, error)

// joiner returns a loader that puts a new claim at the end of the queue, if other claims wait. One
// statement appends the claim to whatever the row has by then. So however many waiters join, none
// loses a race for the row. The rule of Acquire then finds the claim in the queue, and mostly has
// nothing to write.
//
// If no claim waits, the statement is in vain, so the first load looks first, unless claims have waited
// lately. A further load follows a lost race, and sends the statement in any case.
func (s *Store) joiner(a *asking, waited int) loader {
	blind, joined, look := waited > 0, !a.Wait || !s.dialect.joins(a.ID), s.glance(a.ID)
	return func(ctx context.Context, key string) (decision, error) {
		if joined {
			return look(ctx, key)
		}
		if !blind {
			blind = true
			d, err := look(ctx, key)
			if err != nil || d.waiters == 0 {
				return d, err
			}
			waited = d.waiters + d.book.Omitted
		}
		e := a.entry()
		claim, err := json.Marshal(write(&e))
		if err != nil {
			return decision{}, err
		}
		if err := detached.Write(ctx); err != nil {
			return decision{}, err
		}
		more := micros(spare(a.Claim, waited))
		alive, longest := micros(roomy(a.Alive())), micros(roomy(book.Longest(a.Claim)))
		args := []any{longest + more, string(claim), alive, longest, more, s.parameter(escape(key)), escape(a.ID)}
		if !s.dialect.returning {
			n, err := s.exec(ctx, s.dialect.join, false, args...)
			if err != nil {
				return decision{}, err
			}
			joined = n > 0
			return look(ctx, key)
		}
		rows, err := query(ctx, s, s.dialect.join+cmp.Or(s.dialect.joined, returnRow), false, args, readState)
		switch {
		case err != nil:
			return decision{}, err
		case len(rows) == 0:
			return look(ctx, key)
		}
		joined = true
		return begin(key, rows[0])
	}
}

// joins reports whether the statements join, stay, leave and extend serve a claim with this
// id. The other ids have letters with a meaning in json_search.
func (d *Dialect) joins(id string) bool { return d.join != "" && !strings.ContainsAny(id, `\%_`) }

// crowds remember for each key how many other claims waited beside the last Acquire that waited. If
// some did, the statements for a key without waiters would be in vain. Keys share the memory: a wrong
// answer costs a statement or two, or gives a place for too long.
type crowds struct {
	seed   maphash.Seed
	waited [1024]atomic.Int32
}

func (c *crowds) of(key string) *atomic.Int32 {
	return &c.waited[maphash.String(c.seed, key)%uint64(len(c.waited))]
}
