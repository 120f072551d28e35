package memcachelock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// tick is the unit of the server's clock. grain is by how much a reading may be behind: the
// clock shows whole seconds, is updated once a second, and may be late on a busy machine.
// The clock is never ahead.
const (
	tick  = time.Second
	grain = 3 * tick
)

// format is the version of a record. A later format may change every field but format.
const format = 1

// A record is the value of a key's item, in JSON that people can read.
type record struct {
	Format int64 `json:"format"`

	Key   string  `json:"key"`
	Held  []entry `json:"held,omitempty"`
	Phase uint64  `json:"phase,omitempty"`
	Tombs []tomb  `json:"tombs,omitempty"`
}

// An entry is a claim that holds.
type entry struct {
	ID     string `json:"id"`
	Owner  string `json:"owner,omitempty"`
	Note   string `json:"note,omitempty"`
	Weight int64  `json:"weight"`
	Limit  int64  `json:"limit"`

	// Until is in milliseconds of the server's clock. 0: as long as the item.
	Until int64 `json:"until,omitempty"`
	Since int64 `json:"since"` // microseconds since 1970

	// Token is 0 in a record that the claim has just begun: the CAS number, which makes the
	// token, is known only after the write.
	Token uint64 `json:"token,omitempty"`
	Left  bool   `json:"left,omitempty"`
}

type tomb struct {
	ID     string `json:"id"`
	Until  int64  `json:"until"`
	Broken bool   `json:"broken,omitempty"`
}

// A state is what a job knows of a key's item.
type state struct {
	value string
	cas   uint64 // 0 if there is no item
	left  int64  // seconds
	clock int64  // the server's, in seconds since 1970; 0 if not requested

	// own replaces the value if not nil.
	own *lastWrite

	// Results of book: the key of the record, and whether the record is one claim and
	// nothing else, for as long as the item stays.
	key   string
	alone bool
}

func (st *state) exists() bool { return st.cas != 0 }

// moment is the time of a state. Without the clock only differences count.
func (st *state) moment() book.Moment {
	return book.Moment{Now: time.Duration(st.clock) * tick, Grain: grain}
}

const forever = math.MaxInt64 / 2

// errClock says that a state cannot be read, or written, without the time.
var errClock = errors.New("the time is missing")

// A foreignError reports an item that Holdfast has not written.
type foreignError struct{ key, value string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("the item of key %q was not written by holdfast: %.60q", e.key, e.value)
}

// book reads the state of a key. If key is "", the record names the key.
func (st *state) book(c *conn, key string) (*book.Book, error) {
	b := new(book.Book)
	if !st.exists() {
		return b, nil
	}
	if b.Floor = c.token(st.cas); b.Floor < st.cas || b.Floor >= 1<<53 { // or the sum has wrapped around
		return nil, fmt.Errorf("%w: the item of key %q has the CAS number %d, which makes no fencing token below 2^53: did something else write it? Delete it, if nobody holds the lock", driver.ErrInvalid, key, st.cas)
	}
	if st.own != nil {
		own := st.own.entry
		own.Until = forever // If the claim has expired there is no item to change.
		b.Held, b.Phase = []book.Entry{own}, st.own.phase
		st.key, st.alone = key, true
		return b, nil
	}
	var r record
	err := json.Unmarshal([]byte(st.value), &r)
	if r.Format > format { // Other fields may have other types.
		return nil, newer.Check(cmp.Or(key, r.Key), r.Format, format, newer.Passes)
	}
	if err != nil || r.Format != format || r.Key == "" {
		return nil, &foreignError{key, st.value}
	}
	if key != "" && r.Key != key {
		return nil, fmt.Errorf("the item of key %q is about key %q", key, r.Key)
	}
	b.Phase = r.Phase
	st.key = r.Key
	st.alone = len(r.Held) == 1 && len(r.Tombs) == 0 && r.Held[0].Until == 0
	for _, e := range r.Held {
		if e.Until != 0 && st.clock == 0 {
			return nil, errClock
		}
		b.Held = append(b.Held, st.read(e, b))
	}
	for _, t := range r.Tombs {
		if st.clock == 0 {
			return nil, errClock
		}
		b.Tombs = append(b.Tombs, book.Tomb{ID: t.ID, Until: time.Duration(t.Until) * time.Millisecond, Broken: t.Broken})
	}
	return b, nil
}

func (st *state) read(e entry, b *book.Book) book.Entry {
	out := book.Entry{
		ID: e.ID, Owner: e.Owner, Note: e.Note, Weight: e.Weight, Limit: e.Limit,
		Until: time.Duration(e.Until) * time.Millisecond, Since: e.Since,
		Span: 1, Fence: e.Token, Left: e.Left,
	}
	if e.Until == 0 {
		out.Until = time.Duration(st.clock+st.left) * tick
	}
	if e.Token == 0 {
		out.Fence = b.Floor
		if (driver.Claim{Weight: e.Weight, Limit: e.Limit}).Shared() {
			b.Phase = b.Floor
		}
	}
	return out
}

// write turns the state of a key into an item, and returns the expiry of the item. fresh
// is the id of the claim that stands from now on, if there is one. write fails with
// errClock if it needs the time and the time is missing.
func (st *state) write(b *book.Book, key, fresh string) (value []byte, expiry int64, err error) {
	r := record{Format: format, Key: key, Phase: b.Phase}
	now, last := st.moment().Now, time.Duration(0)
	alone := len(b.Held) == 1 && len(b.Tombs) == 0 && b.Held[0].ID == fresh
	for _, e := range b.Held {
		out := entry{
			ID: e.ID, Owner: e.Owner, Note: e.Note, Weight: e.Weight, Limit: e.Limit,
			Until: milliseconds(e.Until), Since: e.Since, Token: e.Fence, Left: e.Left,
		}
		if alone {
			out.Until = 0
		}
		if !st.exists() {
			out.Token, r.Phase = 0, 0
		}
		r.Held = append(r.Held, out)
		last = max(last, e.Until)
	}
	for _, t := range b.Tombs {
		r.Tombs = append(r.Tombs, tomb{ID: t.ID, Until: milliseconds(t.Until), Broken: t.Broken})
		last = max(last, t.Until)
	}
	expiry = max(int64((last-now+tick-1)/tick), 1)
	switch {
	case st.clock == 0 && (!alone || expiry > longest):
		return nil, 0, errClock
	case st.clock+expiry > horizon:
		return nil, 0, fmt.Errorf("%w: Memcached cannot count until %v from now", driver.ErrInvalid, last-now)
	case expiry > longest:
		expiry += st.clock
	}
	value, err = json.Marshal(r)
	return value, expiry, err
}

// longest is the longest expiry in seconds that a server counts from now. A larger number
// means seconds since 1970.
const longest = 30 * 24 * 60 * 60

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
