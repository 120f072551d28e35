package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// How many statements take and free keys at the same time. With more, each would be for fewer keys,
// and a statement for 20 keys takes PostgreSQL no longer than four for one key. There is more than
// one, since the statement for one key may wait for a row that somebody has locked by hand.
const (
	mostTakes = 3
	mostFrees = 2
)

// A taking is an attempt to acquire a key that is uncontended.
type taking struct {
	key, id, claims string
	tokens          int
	ttl             int64
	last            int64 // the last token; 0 if the key is contended
}

func newTaking(a *asking) (*taking, error) {
	t := &taking{tokens: min(max(a.Span, 1), driver.MaxSpan), key: escape(a.Key)}
	if a.Shared() {
		t.tokens = 1
	}
	e := a.entry()
	e.Span = t.tokens
	c := write(&e)
	t.id, t.ttl = c.ID, c.TTL
	c.ID = ""
	claims, err := json.Marshal(page{Held: []claim{c}})
	t.claims = string(claims)
	return t, err
}

// take acquires a key that is uncontended.
func (s *Store) take(ctx context.Context, a *asking) (driver.Grant, error) {
	t, err := newTaking(a)
	if err != nil {
		return driver.Grant{}, err
	}
	one := func() error { return s.takeOne(ctx, t) }
	if s.dialect.takeSome == "" {
		err = one()
	} else {
		err = s.takes.do(ctx, t, one)
	}
	if err != nil || t.last == 0 {
		return driver.Grant{}, err
	}
	return driver.Grant{OK: true, Fence: uint64(t.last - int64(t.tokens) + 1), Span: t.tokens, TTL: a.TTL}, nil
}

func (s *Store) takeOne(ctx context.Context, t *taking) error {
	leave, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := detached.Write(ctx); err != nil {
		return err
	}
	return s.mint(ctx, t)
}

// takeSome acquires several keys by one statement, which inserts the rows that are missing. Two of the
// keys may be the same.
func (s *Store) takeSome(ctx context.Context, some []*taking) error {
	type asked struct {
		Key  string          `json:"key"`
		ID   string          `json:"id"`
		More int             `json:"more"`
		TTL  int64           `json:"ttl"`
		Page json.RawMessage `json:"page"`
	}
	list, byID := make([]asked, len(some)), make(map[string]*taking, len(some))
	for i, t := range some {
		list[i], byID[t.id] = asked{t.key, t.id, t.tokens - 1, t.ttl, json.RawMessage(t.claims)}, t
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	type minted struct {
		id             string
		last, inserted int64
	}
	rows, err := query(ctx, s, s.dialect.takeSome, false, []any{string(text)}, func(scan Scan) (m minted, err error) {
		err = scan(&m.id, &m.last, &m.inserted)
		return m, err
	})
	if err != nil {
		return err
	}
	var inserted int64
	for _, m := range rows {
		byID[m.id].last = m.last
		inserted += m.inserted
	}
	s.noteInserts(ctx, uint64(inserted))
	return nil
}

// A freeing is an attempt to release claims that are sole on their keys.
type freeing struct {
	claims []*driver.Claim
	ended  map[string]bool // keys
}

// free releases the sole claims among cs, and returns their keys.
func (s *Store) free(ctx context.Context, cs []*driver.Claim) (ended map[string]bool, err error) {
	if s.dialect.freeSome == "" {
		return s.releaseSole(ctx, cs)
	}
	f := &freeing{claims: cs}
	err = s.frees.do(ctx, f, func() (err error) {
		f.ended, err = s.releaseSole(ctx, cs)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.ended, nil
}

// freeSome releases the sole claims of several calls by one statement.
func (s *Store) freeSome(ctx context.Context, some []*freeing) error {
	type freed struct {
		Key string `json:"key"`
		ID  string `json:"id"`
	}
	var list []freed
	for _, f := range some {
		for _, c := range f.claims {
			list = append(list, freed{escape(c.Key), escape(c.ID)})
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	rows, err := query(ctx, s, s.dialect.freeSome, false, []any{string(text)}, func(scan Scan) (f freed, err error) {
		err = scan(&f.Key, &f.ID)
		return f, err
	})
	if err != nil {
		return err
	}
	ended := make(map[freed]bool, len(rows))
	for _, f := range rows {
		ended[f] = true
	}
	for _, f := range some {
		f.ended = make(map[string]bool)
		for _, c := range f.claims {
			if ended[freed{escape(c.Key), escape(c.ID)}] {
				f.ended[c.Key] = true
			}
		}
	}
	return nil
}
