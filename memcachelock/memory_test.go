package memcachelock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// small is a server with hardly any memory, which wants smaller items, and has few
// classes of them.
var small = []string{"-m", "1", "-I", "512k", "-f", "2"}

// fill stores a thousand items of each class that small records have, and
// reports whether the server has run out of memory for all of them.
func fill(t *testing.T, m *servers.Memcached, from int) (full bool) {
	t.Helper()
	conn, err := net.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	full = true
	for size := 20; size < 500; size += 60 {
		var out []byte
		for i := range 1000 {
			out = fmt.Appendf(out, "set fill-%d-%d-%d 0 0 %d noreply\r\n%s\r\n", size, from, i, size, strings.Repeat("x", size))
		}
		out = fmt.Appendf(out, "set fill-%d-%d-last 0 0 %d\r\n%s\r\nmn\r\n", size, from, size, strings.Repeat("x", size))
		if _, err := conn.Write(out); err != nil {
			t.Fatal(err)
		}
		last := ""
		for line := ""; line != "MN\r\n"; {
			last = line
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		full = full && strings.Contains(last, "out of memory")
	}
	return full
}

// TestEviction fills a small cache until it evicts the lock.
func TestEviction(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t, small...)
	store := newStore(t, nil, m)
	locks := must.Get(holdfast.New(store, &holdfast.Options{TTL: 15 * time.Second}))
	t.Cleanup(func() { locks.Close() })
	lock := taken(t, locks, "key")
	from := 0
	servers.Until(t, "the lock to be evicted", func() bool { // A renewal makes it stay for longer.
		fill(t, m, from)
		from++
		answer, err := m.Do("me " + store.opts.item("key")) // which does not use it
		return err == nil && answer == "EN"
	})
	told(t, lock)
	other := newLocker(t, nil, m)
	holdsAlone(t, other, taken(t, other, "key"))
	if err := lock.Unlock(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("unlock of what was evicted: %v", err)
	}
	warned(t, m, true)
}

// TestFullServer fills the memory of a server that may not evict: what is held
// is renewed and released, each time with a new connection, and new locks fail
// with the error that says why.
func TestFullServer(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t, append(small, "-M")...)
	s := newStore(t, nil, m)
	b := newLocker(t, nil, m)
	claim := exclusive("key", "mine")
	granted(t, s, claim)
	for from := 0; !fill(t, m, from); from++ {
	}
	held := func(server string) {
		t.Helper()
		for range 3 {
			s.servers[0].closeIdle()
			if err := renew(t.Context(), s, claim); err != nil {
				t.Errorf("a renewal on %s: %v", server, err)
			}
		}
		if got, err := servers.Patient(t.Context(), b.TryLock, "key"); got != nil || !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("of what is held %s says %v", server, err)
		}
	}
	held("a full server")
	if got, err := servers.Patient(t.Context(), b.TryLock, "new"); got != nil || err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("of what is free a full server says %v", err)
	}
	replaceClock(t, m, s.opts.clock())
	held("a full server without a clock")
	holders, err := connected(t, nil, m).Holders(t.Context(), "key")
	if err != nil || len(holders) != 1 || holders[0].ID != driver.PublicID(claim.ID) {
		t.Errorf("the key has the holders %+v, %v", holders, err)
	}
	opened(t, as(m, "bob", "secret")) // of a full server that wants no password
	if err := release(t.Context(), s, claim); err != nil {
		t.Errorf("a release on a full server: %v", err)
	}
	m.Must("flush_all", "OK")
	holdsAlone(t, b, taken(t, b, "key"))
	warned(t, m, false)
}

// replaceClock deletes the item that tells the time from a full server, and takes the
// room that it had before the next client makes it anew.
func replaceClock(t *testing.T, m *servers.Memcached, clock string) {
	t.Helper()
	filler := strings.Repeat("x", len(clock))
	for late := time.Now().Add(patience); ; {
		_, err := m.Do(fmt.Sprintf("md %s\r\nset %s 0 0 26\r\n%s", clock, filler, strings.Repeat("x", 26)))
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := m.Do("mg " + clock + " v"); err != nil || answer == "EN" {
			return
		}
		if time.Now().After(late) {
			t.Fatal("others were always faster")
		}
	}
}

// warned checks what is said of a server's memory.
func warned(t *testing.T, m *servers.Memcached, evicts bool) {
	t.Helper()
	warnings, err := connected(t, nil, m).Check(t.Context())
	if err != nil || len(warnings) > 1 || (len(warnings) == 1 && strings.Contains(warnings[0], "evict")) != evicts {
		t.Errorf("warns of %q, %v", warnings, err)
	}
}

// TestTooLarge has more on a key than its item can hold. A server that is sent
// such a value by "ms" deletes the one that was.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := newStore(t, nil, shared)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reader := func(id string) driver.Ask {
		c := exclusive("too large", id)
		c.Weight = 1
		return c
	}
	wordy := entry{ID: "wordy", Note: strings.Repeat("x", 1<<20-500), Weight: 1, Limit: driver.MaxWeight}
	value, err := json.Marshal(record{Format: format, Key: "too large", Held: []entry{wordy}})
	if err != nil {
		t.Fatal(err)
	}
	shared.Must(fmt.Sprintf("set %s 0 60 %d\r\n%s", s.opts.item("too large"), len(value), value), "STORED")
	held := 1
	for g := (driver.Grant{OK: true}); g.OK; held++ {
		if g, err = s.Acquire(ctx, reader(fmt.Sprint("reader ", held))); err != nil && (g.OK || !strings.Contains(err.Error(), "too large")) {
			t.Fatalf("reader %d: %+v, %v", held, g, err)
		}
	}
	if held--; err == nil || held > 5 {
		t.Errorf("%d readers had room, and the next got %v", held, err)
	}
	if holders, err := s.Holders(ctx, "too large"); err != nil || len(holders) != held {
		t.Errorf("%d readers are left of %d: %v", len(holders), held, err)
	}
	if g, err := s.Acquire(ctx, exclusive("too large", "writer")); err != nil || g.OK {
		t.Errorf("a writer beside them: %+v, %v", g, err)
	}
	if err := release(ctx, s, reader("wordy")); err != nil {
		t.Error(err)
	}
	if g, err := s.Acquire(ctx, reader("with room again")); err != nil || !g.OK {
		t.Errorf("with room again: %+v, %v", g, err)
	}
}

// TestTokensEnd reads items with CAS numbers that something else may have set.
func TestTokensEnd(t *testing.T) {
	c := &conn{epoch: 1_800_000_000}
	most := uint64(1<<53 - 1 - 1_800_000_000*1_000_000)
	for cas, ok := range map[uint64]bool{1: true, most: true, most + 1: false, 1 << 53: false, 1<<64 - 1: false} {
		st := &state{cas: cas, value: `{"format":1,"key":"key"}`}
		if b, err := st.book(c, "key"); (err == nil) != ok || !ok && !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("CAS number %d: %v, %v; does it make a token: %v", cas, b, err, ok)
		}
	}
}
