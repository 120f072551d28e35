package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A decision is a change of the book of a row.
type decision struct {
	change
	key  string
	from state
	book *book.Book // after the change

	// whole says to write the whole row, because the row has expired claims or tombs. Nobody
	// else removes them while one claim holds for long. If the row was read in part, expired tombs
	// do not count: they refuse nothing, and a later write of the whole row removes them. After a
	// lost race, the decision is written in the usual way, so that no renewal loses one race after
	// the other.
	whole bool

	// Before the change: the ids of the only holder and of the first waiter, "" if there is
	// no such claim, the number of waiters as far as read, and the tombs.
	holder, first string
	waiters       int
	tombs         []book.Tomb
}

// begin begins a decision, before the change.
func begin(key string, from state) (decision, error) {
	b, err := from.row.book(key, from.floor)
	if err != nil {
		return decision{}, err
	}
	d := decision{key: key, from: from, book: b, waiters: len(b.Queue), tombs: slices.Clone(b.Tombs)}
	now := from.moment().Now
	over := func(e book.Entry) bool { return e.Until <= now }
	d.whole = slices.ContainsFunc(b.Held, over) || slices.ContainsFunc(b.Queue, over) ||
		!b.Part && slices.ContainsFunc(b.Tombs, func(t book.Tomb) bool { return t.Until <= now })
	if len(b.Held) == 1 && len(b.Queue) > 0 && b.Phase == 0 {
		d.holder, d.first = b.Held[0].ID, b.Queue[0].ID
	}
	return d, nil
}

// handsOver reports whether the first of several waiters holds alone in place of the only
// holder, and nothing else has changed. A claim that joins the queue meanwhile makes no
// difference, because the new holder wants the whole key.
func (d *decision) handsOver() bool {
	b := d.book
	if !d.freed || len(b.Queue) == 0 || len(b.Queue) != d.waiters-1 || len(b.Held) != 1 || b.Held[0].ID != d.first {
		return false
	}
	added := func(t book.Tomb) bool { return !slices.Contains(d.tombs, t) }
	exclusive := driver.Claim{Weight: b.Held[0].Weight, Limit: b.Held[0].Limit}.Exclusive()
	return exclusive && !slices.ContainsFunc(b.Tombs, added)
}

// rest returns how long a claim stands from the time of the decision, in microseconds.
func (d *decision) rest(e *book.Entry) int64 { return micros(e.Until - d.from.moment().Now) }

// errPart says that a decision would write the whole row, of which the store has read a part.
var errPart = errors.New("the row was read in part")

// save writes a decision, unless a write of another process since the read may change the
// decision. save reports whether the row was written.
func (s *Store) save(ctx context.Context, d *decision) (won bool, err error) {
	messages := s.messages(d.key, d.book, d.broken)
	calm := len(d.book.Pushed) == 0
	if d.extend != nil && len(d.book.Queue) > 0 {
		d.whole = false // a renewal must not race with waiters, whose requests remove what has expired
	}
	single := calm && !d.whole && d.from.sole == ""
	if text, args := s.edit(d, single); text != "" {
		return s.put(ctx, text, messages, args...)
	}
	switch {
	case single && d.stay != nil && s.dialect.joins(d.stay.ID):
		id, rest := escape(d.stay.ID), d.rest(d.stay)
		claim, err := json.Marshal(write(d.stay))
		if err != nil {
			return false, err
		}
		return s.put(ctx, s.dialect.stay, nil, rest, id, string(claim), rest, s.parameter(escape(d.key)), id)
	case single && d.extend != nil && s.dialect.joins(d.extend.ID):
		id, rest := escape(d.extend.ID), d.rest(d.extend)
		return s.put(ctx, s.dialect.extend, nil, rest, id, rest, s.parameter(escape(d.key)), id, id)
	case single && d.leave != "" && s.dialect.joins(d.leave):
		id := escape(d.leave)
		return s.put(ctx, s.dialect.leave, nil, id, s.parameter(escape(d.key)), id)
	}
	to := d.from.row
	if err := to.fill(d.book, d.from.moment().Now); err != nil {
		return false, err
	}
	switch {
	case to.version == 0:
		return s.insert(ctx, d.key, d.from.now, to)
	case d.handsOver() && s.dialect.handOver != "":
		held, err := json.Marshal(write(&d.book.Held[0]))
		if err != nil {
			return false, err
		}
		return s.put(ctx, s.dialect.handOver, messages, to.fence, to.until, string(held), s.parameter(escape(d.key)), d.from.fence, escape(d.holder), escape(d.first), d.book.Held[0].Session)
	case d.book.Part:
		return false, errPart
	}
	text := updateRow
	if calm && d.light {
		text = lightRow
	}
	return s.put(ctx, text, messages, to.fence, s.parameter(to.sole), to.since, to.until, to.claims, s.parameter(escape(d.key)), to.version)
}

// insert writes a new row, and reports whether there was none.
func (s *Store) insert(ctx context.Context, key string, now int64, r row) (bool, error) {
	args := []any{s.parameter(escape(key)), now, r.fence, s.parameter(r.sole), r.since, r.until, r.claims}
	if s.dialect.octets {
		args = append(args, escape(key)) // for people, who cannot read bytes
	}
	n, err := s.exec(ctx, s.dialect.insert, false, args...)
	if err != nil && s.dialect.duplicate != "" && s.opts.Code(err) == s.dialect.duplicate {
		return false, nil
	}
	if err == nil && s.untidy() {
		s.tidy(ctx)
	}
	return n == 1, err
}

// put runs a statement that writes a row on a condition, sends messages with the write, and
// reports whether the condition held.
func (s *Store) put(ctx context.Context, text string, messages []message, args ...any) (bool, error) {
	if len(messages) == 0 {
		n, err := s.exec(ctx, text, false, args...)
		return n == 1, err
	}
	list, err := json.Marshal(messages)
	if err != nil {
		return false, err
	}
	sent, err := only(ctx, s, strings.Replace(s.dialect.publish, "{update}", text, 1), false, append(args, string(list)), column[int])
	return sent > 0, err
}
