package sqlstore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// A row is the table's state of one key: a book, in one of two forms. Mostly one claim
// holds and no other claim wants the key. Then sole is the claim's id, the columns have
// its times and token, and one statement can acquire, renew or release the claim without
// a look at claims. Otherwise sole is empty and claims has everything.
type row struct {
	version int64 // grows with each write; 0 if the row does not exist
	format  int64 // the version of the record
	fence   int64 // the highest token given
	sole    string
	since   int64 // when the sole claim was granted
	until   int64 // when everything in the row has expired, tombs included
	claims  string
}

// format is the version of a row and the claims in it. A later format may change every column
// but name, version and format. The row without a name, and the row of a boot (see now), keep
// their format for good, because releases share them.
const format = 1

// A page is the claims of a row. All times are in microseconds. Line is last, so that the add of
// [SQLServer] finds its end. A statement for a queue reads and writes all claims of the row, so
// they leave out the usual numbers.
type page struct {
	Phase uint64  `json:"phase,omitempty"`
	Held  []claim `json:"held,omitempty"`
	Tombs []tomb  `json:"tombs,omitempty"`

	// Never in a row, see Dialect.glance.
	Part    bool `json:"part,omitempty"`
	Omitted int  `json:"omitted,omitempty"`

	Line []claim `json:"line,omitempty"`
}

type claim struct {
	ID     string `json:"id,omitempty"`
	Public string `json:"public"`
	Owner  string `json:"owner,omitempty"`
	Note   string `json:"note,omitempty"`
	To     string `json:"to,omitempty"` // where the client listens
	Left   bool   `json:"left,omitempty"`
	Weight int64  `json:"weight,omitempty"` // 0 for [driver.MaxWeight]
	Limit  int64  `json:"limit,omitempty"`  // 0 for [driver.MaxWeight]
	TTL    int64  `json:"ttl"`
	Span   int    `json:"span,omitempty"` // 0 for 1

	Fence uint64 `json:"fence,omitempty"`
	Since int64  `json:"since,omitempty"`
	Asked int64  `json:"asked,omitempty"` // 0 for Since
	Until int64  `json:"until,omitempty"`
}

type tomb struct {
	ID     string `json:"id"`
	Until  int64  `json:"until"`
	Broken bool   `json:"broken,omitempty"`
}

// book returns the book of the row of a key. floor is the highest token of the keys without a row.
func (r *row) book(key string, floor int64) (*book.Book, error) {
	if r.version != 0 {
		if err := newer.Check(key, r.format, format, newer.Stays); err != nil {
			return nil, err
		}
	}
	if highest := min(r.fence, floor); highest < 0 {
		return nil, fmt.Errorf("%w: the table says that the highest fencing token given is %d (want a number from 0 to 2^53, no smaller than any token given)", driver.ErrInvalid, highest)
	}
	if r.version == 0 {
		return &book.Book{Floor: uint64(floor)}, nil
	}
	var p page
	if err := json.Unmarshal([]byte(r.claims), &p); err != nil || r.sole != "" && len(p.Held) != 1 {
		return nil, fmt.Errorf("%w: the table has claims of this key that make no sense: %.100q", driver.ErrInvalid, r.claims)
	}
	b := &book.Book{Floor: uint64(r.fence), Phase: p.Phase, Part: p.Part, Omitted: p.Omitted}
	if r.sole != "" {
		c := &p.Held[0]
		c.ID, c.Since, c.Until = r.sole, r.since, r.until
		e := c.entry()
		c.Fence = uint64(r.fence) - uint64(e.Span) + 1
		if (driver.Claim{Weight: e.Weight, Limit: e.Limit}).Shared() {
			b.Phase = c.Fence
		}
	}
	for i := range p.Held {
		b.Held = append(b.Held, p.Held[i].entry())
	}
	for i := range p.Line {
		b.Queue = append(b.Queue, p.Line[i].entry())
	}
	for _, t := range p.Tombs {
		b.Tombs = append(b.Tombs, book.Tomb{ID: unescape(t.ID), Until: span(t.Until), Broken: t.Broken})
	}
	return b, nil
}

// fill writes b into the row, as of now.
func (r *row) fill(b *book.Book, now time.Duration) error {
	r.fence, r.sole, r.since, r.until = int64(b.Floor), "", 0, micros(now)
	p := page{Phase: b.Phase}
	for i := range b.Held {
		p.Held = append(p.Held, write(&b.Held[i]))
		r.until = max(r.until, p.Held[i].Until)
	}
	for i := range b.Queue {
		p.Line = append(p.Line, write(&b.Queue[i]))
		r.until = max(r.until, p.Line[i].Until)
	}
	for _, t := range b.Tombs {
		p.Tombs = append(p.Tombs, tomb{ID: escape(t.ID), Until: micros(t.Until), Broken: t.Broken})
		r.until = max(r.until, micros(t.Until))
	}
	if c := alone(b); c != nil {
		only := p.Held[0]
		r.sole, r.since = only.ID, only.Since
		only.ID, only.Fence, only.Since, only.Until = "", 0, 0, 0
		p = page{Held: []claim{only}}
	}
	text, err := json.Marshal(p)
	r.claims = string(text)
	return err
}

// alone returns the claim of b if the columns can hold everything, otherwise nil.
func alone(b *book.Book) *book.Entry {
	if len(b.Held) != 1 || len(b.Queue) > 0 || len(b.Tombs) > 0 {
		return nil
	}
	e := &b.Held[0]
	reader := (driver.Claim{Weight: e.Weight, Limit: e.Limit}).Shared()
	if e.Left || b.Floor != e.Fence+uint64(e.Span)-1 || reader && b.Phase != e.Fence {
		return nil
	}
	return e
}

func write(e *book.Entry) claim {
	return claim{
		ID: escape(e.ID), Public: driver.PublicID(e.ID), Owner: escape(e.Owner), Note: escape(e.Note),
		To: e.Session, Left: e.Left, TTL: micros(e.TTL),
		Weight: unless(e.Weight, driver.MaxWeight), Limit: unless(e.Limit, driver.MaxWeight), Span: unless(e.Span, 1),
		Fence: e.Fence, Since: e.Since, Asked: unless(micros(e.Asked), e.Since), Until: micros(e.Until),
	}
}

// unless returns n, or 0 if n is the usual number.
func unless[N int | int64](n, usual N) N {
	if n == usual {
		return 0
	}
	return n
}

func (c *claim) entry() book.Entry {
	return book.Entry{
		ID: unescape(c.ID), Owner: unescape(c.Owner), Note: unescape(c.Note),
		Session: c.To, Left: c.Left, TTL: span(c.TTL),
		Weight: cmp.Or(c.Weight, driver.MaxWeight), Limit: cmp.Or(c.Limit, driver.MaxWeight), Span: cmp.Or(c.Span, 1),
		Fence: c.Fence, Since: c.Since, Asked: span(cmp.Or(c.Asked, c.Since)), Until: span(c.Until),
	}
}

// micros rounds up: nothing expires early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func span(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }

// Postgres allows no NUL in texts. Escaping keeps common prefixes of texts.
var (
	escaper   = strings.NewReplacer(`\`, `\\`, "\x00", `\0`)
	unescaper = strings.NewReplacer(`\\`, `\`, `\0`, "\x00")
)

func escape(s string) string {
	if !strings.ContainsAny(s, "\\\x00") {
		return s
	}
	return escaper.Replace(s)
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return unescaper.Replace(s)
}
