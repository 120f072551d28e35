package sqlitelock

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestView: what people see with a plain SELECT is what Holders tells, in a view
// that Create brings up to date.
func TestView(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := opened(t, "sqlite://"+path)
	db, err := openDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`DROP VIEW holdfast_claims; CREATE VIEW holdfast_claims AS SELECT 'old' AS version`); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	alone, slot, behind, brief := exclusive("alone"), exclusive("slot"), exclusive("behind"), exclusive("brief")
	slot.Key, slot.Weight, slot.Limit, slot.Note = "shared", 2, 3, `a "note"`
	behind.Key, behind.Owner, behind.Wait = "shared", "somebody", true
	brief.Key, brief.TTL = "brief", time.Millisecond
	for _, a := range []driver.Ask{alone, slot, behind, brief} {
		if g, err := s.Acquire(t.Context(), a); err != nil || g.OK == a.Wait {
			t.Fatalf("%s: %+v, %v", a.ID, g, err)
		}
	}
	var got, want []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("people see\n%q, want\n%q", got, want)
		}
	})
	servers.Until(t, "the end of the brief one", func() bool {
		if g, err := s.Acquire(t.Context(), behind); err != nil || g.OK { // keeps its place
			t.Fatalf("%+v, %v", g, err)
		}
		want = nil
		for _, key := range []string{"key", "shared"} {
			holders, err := s.Holders(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range holders {
				want = append(want, seen(key, h.ID, h.Waiting, h.Owner, h.Note, int64(h.Fence), h.Weight, h.Limit))
			}
		}
		got = viewed(t, db)
		return len(want) == 3 && slices.Equal(got, want)
	})
}

func seen(key, id string, waiting bool, owner, note string, fence, weight, limit int64) string {
	return fmt.Sprint(key, " ", id, " ", waiting, " ", owner, " ", note, " ", fence, " ", weight, "/", limit)
}

// viewed is what the view has, in order. It fails if times are wrong.
func viewed(t *testing.T, db *sql.DB) (lines []string) {
	t.Helper()
	rows, err := db.Query(`SELECT key, id, waiting, coalesce(owner, ''), coalesce(note, ''), coalesce(fence, 0), weight, capacity,
strftime('%Y-%m-%d %H:%M:%f', 'now') < until AND since < strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 minute') FROM holdfast_claims ORDER BY key, waiting, place`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, id, owner, note string
		var waiting, lasts bool
		var fence, weight, limit int64
		if err := rows.Scan(&key, &id, &waiting, &owner, &note, &fence, &weight, &limit, &lasts); err != nil {
			t.Fatal(err)
		}
		if !lasts && key != "brief" {
			t.Errorf("%s: the times of %s are wrong", key, id)
		}
		lines = append(lines, seen(key, id, waiting, owner, note, fence, weight, limit))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
