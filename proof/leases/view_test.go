package leases

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
)

// A plain SELECT shows the same as Holders, whatever the keys, owners and notes contain. A
// NUL is \0 there, and \ is \\.
func TestView(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		s := open(t, at)
		db, _ := e.pool(t, at, 1)
		keys := []string{
			"plain", "Plain", "plain ", " plain", "a\x00b", `a\0b`, `\`, `"quoted"`, "'quoted'", "`quoted`", "$1 ? :name %s {table}",
			"🔒 and 𝕫", "é", "e\u0301", "line\nbreak\ttab\x01", "\u2028", "</script>&", strings.Repeat("\\", 512), strings.Repeat("🔒", 128),
		}
		for i, key := range keys {
			// One alone, or readers, or slots, and a line behind them.
			var claims []driver.Ask
			for n := range 1 + i%4 {
				c := exclusive(key, fmt.Sprintf("%d\x00%d\\", i, n))
				c.Owner, c.Note, c.Wait = "owner of "+key, key, true
				c.Note = c.Note[:min(len(c.Note), 500)]
				switch {
				case i%3 == 1 && n < 2:
					c.Weight = 1
				case i%3 == 2:
					c.Weight, c.Limit = 2, 4
				}
				claims = append(claims, c)
			}
			for _, c := range claims {
				_, err := s.Acquire(t.Context(), c)
				succeed(t, err)
			}
			before := told(t, s, key)
			for { // again if a waiter has lost its place between the looks
				got, after := viewed(t, db, e, at, key), told(t, s, key)
				if slices.Equal(before, after) {
					if !slices.Equal(got, after) {
						t.Errorf("%.30q: people see\n%q, want\n%q", key, got, after)
					}
					break
				}
				before = after
			}
		}
		released := exclusive(keys[0], "0\x000\\")
		succeed(t, s.Release(t.Context(), asks.Releases(released))[0])
		if got := viewed(t, db, e, at, keys[0]); len(got) > 0 {
			t.Errorf("people see %q of what was released", got)
		}
	})
}

// told returns what Holders tells of a key.
func told(t *testing.T, s store, key string) (lines []string) {
	t.Helper()
	holders, err := s.Holders(t.Context(), key)
	succeed(t, err)
	for _, h := range holders {
		lines = append(lines, seen(h.ID, h.Waiting, shownAs(h.Owner), shownAs(h.Note), int64(h.Fence), h.Weight, h.Limit))
	}
	return lines
}

func seen(id string, waiting bool, owner, note string, fence, weight, limit int64) string {
	return fmt.Sprint(id, " ", waiting, " ", owner, " ", note, " ", fence, " ", weight, "/", limit)
}

func shownAs(text string) string { return strings.NewReplacer(`\`, `\\`, "\x00", `\0`).Replace(text) }

// viewed is what the view has of a key, in order. It fails if times are wrong.
func viewed(t *testing.T, db *sql.DB, e *engine, at, key string) (lines []string) {
	t.Helper()
	condition, now := "key = $1", "now()"
	if e == mariadb {
		condition, now = "BINARY `key` = BINARY ?", "now(6)"
	}
	query := fmt.Sprintf("SELECT id, waiting, owner, note, fence, weight, capacity, since <= %s, until > %[1]s FROM %s_claims WHERE %s ORDER BY waiting, place", now, table(at), condition)
	rows, err := db.QueryContext(t.Context(), query, shownAs(key))
	succeed(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, owner, note string
		var waiting, begun, lasts bool
		var fence sql.NullInt64
		var weight, limit int64
		succeed(t, rows.Scan(&id, &waiting, &owner, &note, &fence, &weight, &limit, &begun, &lasts))
		if !begun || !lasts {
			t.Errorf("%.30q: %s has begun: %t, lasts: %t", key, id, begun, lasts)
		}
		if fence.Valid == waiting {
			t.Errorf("%.30q: %s waits: %t, has token %v", key, id, waiting, fence)
		}
		lines = append(lines, seen(id, waiting, owner, note, fence.Int64, weight, limit))
	}
	succeed(t, rows.Err())
	return lines
}
