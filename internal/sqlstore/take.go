package sqlstore

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// How many statements take and free keys at the same time, if there is more than one writer. With
// more, each would be for fewer keys, and a statement for 20 keys takes PostgreSQL no longer than four
// for one key. There is more than one, since the statement for one key may wait for a row that somebody
// has locked by hand.
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
	inserted        bool  // a row for the key
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
	if err != nil {
		return driver.Grant{}, err // A statement may still be under way for t.
	}
	if t.inserted && s.untidy() {
		if leave, err := s.turn(ctx); err == nil {
			s.tidy(ctx)
			leave()
		}
	}
	if t.last == 0 {
		return driver.Grant{}, nil
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

// takeSome acquires several keys by one statement, or two, and inserts the rows that are missing. Two
// of the keys may be the same.
func (s *Store) takeSome(ctx context.Context, some []*taking) error {
	if err := s.mintSome(ctx, s.dialect.takeSome, some); err != nil || s.dialect.makeSome == "" {
		return err
	}
	some = slices.DeleteFunc(slices.Clone(some), func(t *taking) bool { return t.last > 0 })
	if len(some) > 0 {
		_ = s.mintSome(ctx, s.dialect.makeSome, some) // Each call that got nothing goes on alone.
	}
	return nil
}

func (s *Store) mintSome(ctx context.Context, statement string, some []*taking) error {
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
	ctx = context.WithValue(ctx, several{}, true)
	rows, err := query(ctx, s, statement, false, []any{string(text)}, func(scan Scan) (m minted, err error) {
		err = scan(&m.id, &m.last, &m.inserted)
		return m, err
	})
	if err != nil {
		return err
	}
	for _, m := range rows {
		if t := byID[m.id]; t != nil {
			t.last, t.inserted = m.last, m.inserted > 0
		}
	}
	return nil
}

// A freeing is an attempt to release claims that are sole on their keys.
type freeing struct {
	claims []sole
	ended  map[string]bool // keys; nil if no statement was sent
}

// A sole is the key and the id of a claim, as in the table.
type sole struct {
	Key string `json:"key"`
	ID  string `json:"id"`
}

// free releases the sole claims among cs, and returns their keys.
func (s *Store) free(ctx context.Context, cs []*driver.Claim) (map[string]bool, error) {
	if s.dialect.freeSome == "" {
		return s.releaseSole(ctx, cs)
	}
	f := &freeing{}
	for _, c := range cs {
		f.claims = append(f.claims, sole{escape(c.Key), escape(c.ID)})
	}
	one := func() (err error) {
		f.ended, err = s.releaseSole(ctx, cs)
		return err
	}
	err := s.frees.do(ctx, f, one)
	if err == nil && f.ended == nil {
		err = one()
	}
	if err != nil {
		return nil, err
	}
	return f.ended, nil
}

// freeSome releases the sole claims of several calls by one statement, which returns only keys. So it
// leaves out calls for a key of an earlier call.
func (s *Store) freeSome(ctx context.Context, some []*freeing) error {
	var list []sole
	var sent []*freeing
	of := make(map[string]*freeing)
	for _, f := range some {
		if slices.ContainsFunc(f.claims, func(c sole) bool { return of[c.Key] != nil }) {
			continue
		}
		for _, c := range f.claims {
			of[c.Key] = f
		}
		list, sent = append(list, f.claims...), append(sent, f)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	keys, err := s.named(context.WithValue(ctx, several{}, true), s.dialect.freeSome, []any{string(text)})
	if err != nil {
		return err
	}
	for _, f := range sent {
		f.ended = make(map[string]bool)
	}
	for key := range keys {
		if f := of[escape(key)]; f != nil {
			f.ended[key] = true
		}
	}
	return nil
}
