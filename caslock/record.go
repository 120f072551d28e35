package caslock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// format is the version of a page. A later format may change every field but format.
const format = 1

// A page is the content of a record, in JSON that people can read.
type page struct {
	Format int64 `json:"format"`

	Key   string `json:"key"`
	Seq   uint64 `json:"seq"`   // grows by each swap, and over a removal of the record
	Nonce uint64 `json:"nonce"` // never repeats
	claims
}

// claims are the part of a page that changes only by a call. They can be compared.
type claims struct {
	Floor uint64  `json:"floor"`
	Phase uint64  `json:"phase,omitempty"`
	Held  []claim `json:"held,omitempty"`
	Queue []claim `json:"queue,omitempty"`
	Tombs []tomb  `json:"tombs,omitempty"`
}

func (c *claims) equal(o *claims) bool {
	return c.Floor == o.Floor && c.Phase == o.Phase &&
		slices.Equal(c.Held, o.Held) && slices.Equal(c.Queue, o.Queue) && slices.Equal(c.Tombs, o.Tombs)
}

// place returns the place of a claim in the queue, -1 if the claim does not wait.
func (c *claims) place(id string) int {
	return slices.IndexFunc(c.Queue, func(c claim) bool { return c.ID == id })
}

// A span says how long something stands: from when an observer first sees the beat. Durations
// are in microseconds.
type span struct {
	Beat uint64 `json:"beat"` // the Nonce of the page that last prolonged it
	Kept int64  `json:"kept"`
}

type claim struct {
	ID     string `json:"id"`
	Owner  string `json:"owner,omitempty"`
	Note   string `json:"note,omitempty"`
	Weight int64  `json:"weight"`
	Limit  int64  `json:"limit"`
	TTL    int64  `json:"ttl"`
	Span   int    `json:"span"`
	Fence  uint64 `json:"fence,omitempty"`
	Since  int64  `json:"since"`
	Left   bool   `json:"left,omitempty"`
	Pause  int64  `json:"pause,omitempty"` // between the looks of a waiter that the register does not notify
	span
}

type tomb struct {
	ID     string `json:"id"`
	Broken bool   `json:"broken,omitempty"`
	span
}

// A foreignError reports a record that Holdfast has not written.
type foreignError struct {
	key  string
	data []byte
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("the record of key %q was not written by holdfast: %.60q", e.key, e.data)
}

// parse reads the data of a record. If key is empty, the page names the key.
func parse(key string, data []byte) (*page, error) {
	p := new(page)
	err := json.Unmarshal(data, p)
	if p.Format > format { // Other fields may have other types.
		return nil, newer.Check(cmp.Or(key, p.Key), p.Format, format, newer.Stays)
	}
	if err != nil || p.Format != format || p.Key == "" || p.Seq == 0 || key != "" && p.Key != key {
		return nil, &foreignError{key, data}
	}
	return p, nil
}

// sights are when a process first saw the beats of the claims and tombs of a key, by id.
type sights map[string]sight

type sight struct {
	beat  uint64
	since time.Duration // by the clock of the Store
	own   bool          // this process wrote the beat, after since
}

// drift is the allowance for clocks that run at different rates: for how much longer than its
// span a claim stands for other processes.
func drift(d time.Duration) time.Duration { return d / allowance }

const allowance = 64

// driftless is what is left of a time left, without the allowance.
func driftless(d time.Duration) time.Duration { return d - d/(allowance+1) }

// see returns when something was first seen, and notes the time if it was not.
func (s sights) see(id string, sp span, now time.Duration) (until time.Duration) {
	seen, known := s[id]
	if !known || seen.beat != sp.Beat {
		seen = sight{beat: sp.Beat, since: now}
		s[id] = seen
	}
	kept := time.Duration(sp.Kept) * time.Microsecond
	if !seen.own {
		kept += drift(kept)
	}
	return seen.since + kept
}

// exact lets everything seen end without an allowance for clocks, for people.
func (s sights) exact() {
	for id, seen := range s {
		seen.own = true
		s[id] = seen
	}
}

// tombSight is the name of a tomb among the sights: a claim may have the same id.
func tombSight(id string) string { return "tomb " + id }

// book returns the book of a page as seen at the time now, and forgets the sights of what is
// not on the page.
func (c *claims) book(s sights, now time.Duration) *book.Book {
	b := &book.Book{Floor: c.Floor, Phase: c.Phase}
	for _, e := range c.Held {
		b.Held = append(b.Held, e.entry(s.see(e.ID, e.span, now), now))
	}
	for _, e := range c.Queue {
		b.Queue = append(b.Queue, e.entry(s.see(e.ID, e.span, now), now))
	}
	for _, t := range c.Tombs {
		b.Tombs = append(b.Tombs, book.Tomb{ID: t.ID, Until: s.see(tombSight(t.ID), t.span, now), Broken: t.Broken})
	}
	if len(s) > len(c.Held)+len(c.Queue)+len(c.Tombs) {
		here := maps.Collect(c.spans())
		maps.DeleteFunc(s, func(id string, _ sight) bool { _, ok := here[id]; return !ok })
	}
	return b
}

// spans yields what is on the page, by the names of the sights.
func (c *claims) spans() iter.Seq2[string, span] {
	return func(yield func(string, span) bool) {
		for _, list := range [][]claim{c.Held, c.Queue} {
			for i := range list {
				if !yield(list[i].ID, list[i].span) {
					return
				}
			}
		}
		for _, t := range c.Tombs {
			if !yield(tombSight(t.ID), t.span) {
				return
			}
		}
	}
}

// last returns how long something on the page stands after it was first seen.
func (c *claims) last() (longest time.Duration) {
	for _, sp := range c.spans() {
		longest = max(longest, time.Duration(sp.Kept)*time.Microsecond)
	}
	return longest
}

func (c *claim) entry(until, now time.Duration) book.Entry {
	return book.Entry{
		ID: c.ID, Owner: c.Owner, Note: c.Note, Left: c.Left,
		Weight: c.Weight, Limit: c.Limit, TTL: time.Duration(c.TTL) * time.Microsecond,
		Until: until, Asked: now, Since: c.Since, Span: c.Span, Fence: c.Fence,
	}
}

// write returns the claims of a book that the page with this nonce will have. A claim keeps its
// beat if its end is as before.
func write(b *book.Book, before *claims, old sights, pauses map[string]time.Duration, nonce uint64, now time.Duration) claims {
	spans := maps.Collect(before.spans())
	kept := func(id string, until time.Duration) span {
		if sp, known := spans[id]; known && old.see(id, sp, now) == until {
			return sp
		}
		return span{nonce, micros(until - now)}
	}
	all := func(entries []book.Entry) (list []claim) {
		for i := range entries {
			e := &entries[i]
			list = append(list, claim{
				ID: e.ID, Owner: e.Owner, Note: e.Note, Left: e.Left,
				Weight: e.Weight, Limit: e.Limit, TTL: micros(e.TTL), Span: e.Span,
				Fence: e.Fence, Since: e.Since, Pause: micros(pauses[e.ID]), span: kept(e.ID, e.Until),
			})
		}
		return list
	}
	after := claims{Floor: b.Floor, Phase: b.Phase, Held: all(b.Held), Queue: all(b.Queue)}
	for _, t := range b.Tombs {
		after.Tombs = append(after.Tombs, tomb{t.ID, t.Broken, kept(tombSight(t.ID), t.Until)})
	}
	return after
}

// micros rounds up: nothing expires early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func (p *page) encode() ([]byte, error) { return json.Marshal(p) }
