package mysqllock

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
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
	at := config(t, m.URL())
	at.Params = nil // as in a configuration of a user
	s, err := NewSession(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &batched{T: t, sessionConn: newSessionConn(s.server, session.Events{Ending: func(error) {}}), server: s.server}
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
	if n := b.updates(); n != "3" {
		t.Errorf("three rounds took %s updates", n)
	}
}

// updates returns how many UPDATE statements the session has sent.
func (b *batched) updates() (n string) {
	var name string
	if err := b.conn.QueryRowContext(b.Context(), "SHOW SESSION STATUS LIKE 'Com_update'").Scan(&name, &n); err != nil {
		b.Fatal(err)
	}
	return n
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

// locking runs a statement that keeps rows or tables locked until unlock is called.
func locking(t *testing.T, m *servers.MariaDB, statement string) (unlock func()) {
	t.Helper()
	db := sql.OpenDB(must.Get(mysql.NewConnector(config(t, m.URL()))))
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	for _, text := range []string{"SET autocommit = 0", statement} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		// The end of the connection would release the locks later.
		for _, text := range []string{"ROLLBACK", "UNLOCK TABLES"} {
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSessionWaitsOnce: claims that come together wait once for a row or table that somebody
// has locked, and not for as long as the server lets others wait.
func TestSessionWaitsOnce(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"LOCK TABLES holdfast_fence READ", "SELECT * FROM holdfast_fence FOR UPDATE"} {
		m := shared.Database(t)
		b := newBatched(t, m)
		unlock := locking(t, m, statement)
		_, errs := b.together(trying, keys(5))
		for key, err := range errs {
			if !locked(err) {
				t.Errorf("%s: %s returned %v, want error %d", statement, key, err, lockWait)
			}
		}
		if n := b.updates(); n != "1" {
			t.Errorf("%s: the claims sent %s updates, want 1", statement, n)
		}
		unlock()
		if tokens, errs := b.together(trying, keys(5)); tokens["key 0"] == 0 {
			t.Errorf("%s: afterwards, a claim returned %v", statement, errs["key 0"])
		}
	}
}

// TestSessionPingsBetweenClaims: a ping waits for one claim at most, and not for all claims
// that wait for their rows one by one.
func TestSessionPingsBetweenClaims(t *testing.T) {
	t.Parallel()
	m := shared.Database(t)
	b := newBatched(t, m)
	m.Must("DELETE FROM " + DefaultSessionTable) // so that no claims share a statement
	var order []string
	var rs []request
	for _, key := range keys(3) {
		rs = append(rs, request{kind: trying, name: b.server.Name(key), done: func(uint64, error) {
			order = append(order, key)
			if len(order) == 1 {
				b.Ping(time.Minute, func(error) { order = append(order, "ping") })
			}
		}})
	}
	b.serve(rs)
	if want := []string{"key 0", "ping", "key 1", "key 2"}; !slices.Equal(order, want) {
		t.Errorf("the answers came in the order %q, want %q", order, want)
	}
}

// TestSessionOnOddServer: variables of the server that change when statements commit change
// nothing for a session.
func TestSessionOnOddServer(t *testing.T) {
	t.Parallel()
	m := servers.StartMariaDB(t, "innodb_flush_method = nosync", "autocommit = 0", "completion_type = CHAIN")
	b := newBatched(t, m)
	for range 2 {
		if tokens, errs := b.together(trying, keys(2)); tokens["key 0"] == 0 {
			t.Fatal(errs)
		}
		var open bool
		if err := b.conn.QueryRowContext(t.Context(), "SELECT @@in_transaction").Scan(&open); err != nil || open {
			t.Errorf("a transaction is open after the claims: %t, %v", open, err)
		}
		b.together(freeing, keys(2))
	}
}
