package mysqllock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session"
)

// A batched is a session whose requests come together.
type batched struct {
	*testing.T
	*sessionConn
	server *sessionServer
}

func newBatched(t *testing.T, m *servers.MariaDB) *batched {
	t.Helper()
	s, err := NewSession(config(t, m.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &batched{T: t, sessionConn: newSessionConn(session.Events{}), server: s.server}
	if b.conn, err = s.server.connect(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.conn.Close() })
	b.table = s.server.quoted
	return b
}

// together sends one request of a kind for each key, and returns the answers by key.
func (b *batched) together(k kind, keys []string) (tokens map[string]uint64, errs map[string]error) {
	tokens, errs = make(map[string]uint64), make(map[string]error)
	var rs []request
	for _, key := range keys {
		rs = append(rs, request{kind: k, name: b.server.Name(key), wait: true, done: func(token uint64, err error) { tokens[key], errs[key] = token, err }})
	}
	b.serve(rs)
	for _, key := range keys {
		if _, answered := errs[key]; !answered {
			b.Errorf("the request for %s was not answered", key)
		}
	}
	return tokens, errs
}

// held returns the keys whose lock is held.
func (b *batched) held(keys []string) (held []string) {
	for _, key := range keys {
		var used bool
		if err := b.conn.QueryRowContext(b.Context(), "SELECT IS_USED_LOCK(?) IS NOT NULL", b.server.Name(key)).Scan(&used); err != nil {
			b.Fatal(err)
		}
		if used {
			held = append(held, key)
		}
	}
	return held
}

func keys(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("key ", i))
	}
	return list
}

// TestSessionTogether: locks requested at the same time take one commit, and each gets tokens
// of its own, above all tokens of its row.
func TestSessionTogether(t *testing.T) {
	t.Parallel()
	b := newBatched(t, shared.Database(t))
	all := keys(maxBatch)
	last := make(map[int]uint64)
	for range 3 {
		tokens, errs := b.together(trying, all)
		byRow := make(map[int][]uint64)
		for key, token := range tokens {
			if errs[key] != nil || token == 0 {
				t.Fatalf("%s got token %d and %v", key, token, errs[key])
			}
			id := row(b.server.Name(key))
			byRow[id] = append(byRow[id], token)
		}
		for id, tokens := range byRow {
			for _, token := range slices.Sorted(slices.Values(tokens)) {
				if token < last[id]+span {
					t.Errorf("the row %d gave token %d after %d, which has %d tokens", id, token, last[id], span)
				}
				last[id] = token
			}
		}
		if held := b.held(all); len(held) != len(all) {
			t.Errorf("%d of %d locks are held", len(held), len(all))
		}
		if _, errs := b.together(freeing, all); slices.ContainsFunc(all, func(key string) bool { return errs[key] != nil }) {
			t.Errorf("releases returned %v", errs)
		}
		if held := b.held(all); len(held) != 0 {
			t.Errorf("%v are held after the release", held)
		}
	}
	var name, updates string
	if err := b.conn.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Com_update'").Scan(&name, &updates); err != nil || updates != "3" {
		t.Errorf("three rounds took %s updates, %v", updates, err)
	}
}

// TestSessionTogetherRefused: a lock of a different session and a lock without a row for its
// tokens do not harm the locks requested at the same time.
func TestSessionTogetherRefused(t *testing.T) {
	t.Parallel()
	m := shared.Database(t)
	b, other := newBatched(t, m), newBatched(t, m)
	all := keys(maxBatch)
	taken := all[7]
	if tokens, errs := other.together(trying, []string{taken}); tokens[taken] == 0 {
		t.Fatal(errs)
	}
	first, errs := b.together(trying, all)
	for _, key := range all {
		if errs[key] != nil || (first[key] == 0) != (key == taken) {
			t.Errorf("%s got token %d and %v", key, first[key], errs[key])
		}
	}
	free := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return key == taken })
	b.together(freeing, free)

	id := row(b.server.Name(all[0]))
	lost := func(key string) bool { return row(b.server.Name(key)) == id }
	m.Must(fmt.Sprintf("DELETE FROM %s WHERE id = %d", DefaultSessionTable, id))
	second, errs := b.together(trying, all)
	for _, key := range all {
		switch {
		case lost(key):
			if key != taken && !errors.Is(errs[key], driver.ErrInvalid) {
				t.Errorf("%s, whose row is lost, got token %d and %v", key, second[key], errs[key])
			}
		case errs[key] != nil || (second[key] == 0) != (key == taken):
			t.Errorf("%s got token %d and %v", key, second[key], errs[key])
		case key != taken && second[key] < first[key]+span:
			t.Errorf("%s got token %d after %d", key, second[key], first[key])
		}
	}
	want := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return lost(key) && key != taken })
	if held := b.held(all); !slices.Equal(held, want) {
		t.Errorf("held are %v, want %v", held, want)
	}

	// The mark of the refused lock is released as often as it was acquired.
	if b.marks[b.server.Name(taken)].IsZero() {
		t.Error("the refused lock has no mark")
	}
	b.unmark(time.Now().Add(time.Hour))
	marked := m.Must("SELECT IS_USED_LOCK('" + mark(b.server.Name(taken)) + "') IS NOT NULL")
	if strings.TrimSpace(marked) != "0" {
		t.Error("the mark is left")
	}
}
