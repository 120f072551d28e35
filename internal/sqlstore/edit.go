package sqlstore

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-go/holdfast/internal/book"
)

// texts are the claims of a row, letter by letter.
type texts struct {
	Held []json.RawMessage `json:"held"`
	Line []json.RawMessage `json:"line"`
}

// mostSought is the most bytes of a claim that a statement searches for. REPLACE and CHARINDEX of SQL
// Server search for 4,000 UTF-16 units, and a text has no more units than bytes.
const mostSought = 3900

// edit returns the statement that writes a change of a single claim, for an engine that edits the
// claims as a text, and "" if there is none. The condition is the text of that claim before, so
// the statement works on whatever the rest of the row is by then. JSON puts a backslash before a
// quotation mark, so the text of a claim occurs once, and never within an owner or a note.
func (s *Store) edit(d *decision, single bool) (statement string, args []any) {
	one := single && (d.join != nil || d.stay != nil || d.extend != nil || d.leave != "")
	var old texts
	if s.dialect.swap == "" || d.from.sole != "" || !one && !d.handsOver() || json.Unmarshal([]byte(d.from.claims), &old) != nil {
		return "", nil
	}
	key := s.parameter(escape(d.key))
	switch {
	case single && d.join != nil && len(old.Line) > 0:
		id, _ := json.Marshal(escape(d.join.ID))
		return s.dialect.add, []any{micros(d.join.Until), "," + text(d.join), key, `{"id":` + string(id) + ","}
	case single && d.stay != nil:
		if i, until := search(old.Line, d.stay.ID); i >= 0 {
			return s.dialect.swap, []any{micros(d.stay.Until), string(old.Line[i]), text(d.stay), key, until}
		}
	case single && d.extend != nil:
		if i, until := search(old.Held, d.extend.ID); i >= 0 {
			return s.dialect.swap, []any{micros(d.extend.Until), string(old.Held[i]), text(d.extend), key, until}
		}
	case single && d.leave != "":
		if i, until := search(old.Line, d.leave); i > 0 {
			return s.dialect.swap, []any{int64(0), "," + string(old.Line[i]), "", key, until}
		}
	case d.handsOver() && len(old.Line) > 1 && len(old.Held[0]) <= mostSought && len(old.Line[0]) <= mostSought:
		holder := &d.book.Held[0]
		return s.dialect.relay, []any{
			micros(holder.Until), int64(d.book.Floor), `{"held":[` + string(old.Held[0]) + "]", `{"held":[` + text(holder) + "]",
			`"line":[` + string(old.Line[0]) + ",", `"line":[`, key, d.from.fence,
		}
	}
	return "", nil
}

// search returns the index and the end of the claim with this id, and a negative index if there is
// no such claim or its text is too long.
func search(claims []json.RawMessage, id string) (i int, until int64) {
	i = slices.IndexFunc(claims, func(text json.RawMessage) bool {
		var c claim
		if len(text) > mostSought || json.Unmarshal(text, &c) != nil || c.ID != escape(id) {
			return false
		}
		until = c.Until
		return true
	})
	return i, until
}

// text is a claim as in a row. JSON can write every claim.
func text(e *book.Entry) string {
	written, _ := json.Marshal(write(e))
	return string(written)
}
