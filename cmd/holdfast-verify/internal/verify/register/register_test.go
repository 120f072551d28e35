package register

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/servers"
)

var (
	fenced = Name{"key", true}
	plain  = Name{"key", false}
)

// each runs a test on registers of every kind. open opens them as a process does.
func each(t *testing.T, test func(t *testing.T, open func(owner uint32) Registers)) {
	for kind, at := range map[Kind]func(t *testing.T) string{
		Files:    func(t *testing.T) string { return t.TempDir() },
		SQLite:   func(t *testing.T) string { return filepath.Join(t.TempDir(), "100%?.db") },
		Postgres: func(t *testing.T) string { return servers.StartPostgres(t, "fsync = off").URL() },
		MySQL:    func(t *testing.T) string { return servers.StartMariaDB(t, "innodb_flush_method = nosync").URL() },
		Redis:    func(t *testing.T) string { return servers.StartRedis(t).URL() },
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			place := Place{kind, at(t)}
			open := func(owner uint32) Registers {
				all, err := place.Open(owner)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { all.Close() })
				return all
			}
			if err := open(0).Create(t.Context(), []Name{fenced, plain}); err != nil {
				t.Fatal(err)
			}
			test(t, open)
		})
	}
}

func TestRegisters(t *testing.T) {
	each(t, func(t *testing.T, open func(uint32) Registers) {
		a, b := open(1), open(2)
		add := func(all Registers, name Name, r Record, want State) {
			t.Helper()
			if s, err := all.Append(t.Context(), name, r); err != nil || s.Refused != want.Refused || !s.Refused && s != want {
				t.Errorf("%s takes %+v: %+v, %v; want %+v", name, r, s, err, want)
			}
		}
		add(a, fenced, Record{Token: 5}, State{})
		add(a, fenced, Record{Token: 9, Value: 1 << 62}, State{Value: 1 << 62})
		add(b, fenced, Record{Token: 8, Value: 40}, State{Refused: true})
		add(b, fenced, Record{Token: 8}, State{Refused: true})
		add(b, fenced, Record{Token: 9}, State{Value: 1 << 62})
		add(b, fenced, Record{Token: 10}, State{Value: 1 << 62}) // larger, but not as text
		add(a, fenced, Record{Token: 9, Value: 41, Seen: 1 << 62}, State{Refused: true})
		add(a, fenced, Record{Token: 1<<63 - 2, Value: 42, Seen: 1 << 62}, State{Value: 42})
		add(b, fenced, Record{Token: 1<<63 - 3}, State{Refused: true})

		add(a, plain, Record{Token: 9, Value: 50}, State{Value: 50})
		add(b, plain, Record{Token: 8, Value: 51, Seen: 7}, State{Value: 51})

		for name, want := range map[Name][]Record{
			fenced: {{Token: 5}, {9, 1 << 62, 0}, {Token: 9}, {Token: 10}, {1<<63 - 2, 42, 1 << 62}},
			plain:  {{9, 50, 0}, {8, 51, 7}},
		} {
			if got, err := open(3).Records(t.Context(), name); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s has accepted %v, %v; want %v", name, got, err, want)
			}
			if s, err := a.Read(t.Context(), name); err != nil || s.Value != want[len(want)-1].Value {
				t.Errorf("%s reads %+v, %v; want %d", name, s, err, want[len(want)-1].Value)
			}
		}
	})
}

// Each append learns its own fate, however many there are at once, and the record
// has those that were accepted, in the order of their tokens.
func TestTogether(t *testing.T) {
	each(t, func(t *testing.T, open func(uint32) Registers) {
		const writers, times = 6, 50
		var all sync.WaitGroup
		var mu sync.Mutex
		accepted := make(map[uint64]bool)
		for w := range writers {
			own := open(uint32(w + 1))
			all.Go(func() {
				for i := range times {
					value := uint64(w*times + i + 1)
					s, err := own.Append(t.Context(), fenced, Record{Token: uint64(i + 1), Value: value})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					accepted[value] = !s.Refused
					mu.Unlock()
				}
			})
		}
		all.Wait()
		records, err := open(0).Records(t.Context(), fenced)
		if err != nil {
			t.Fatal(err)
		}
		var last uint64
		for _, r := range records {
			if !accepted[r.Value] {
				t.Errorf("%+v is in the record, and its writer was told that it was refused", r)
			}
			if r.Token < last {
				t.Errorf("%+v was accepted after token %d", r, last)
			}
			last = r.Token
			delete(accepted, r.Value)
		}
		for value, yes := range accepted {
			if yes {
				t.Errorf("%d is not in the record, and its writer was told that it was accepted", value)
			}
		}
	})
}

// Users are told to guard a key of Redis by what guards it here.
func TestDocumentedScript(t *testing.T) {
	text, err := os.ReadFile("../../../../../docs/guarding.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```lua\n"+fencedText+"```\n") {
		t.Error("docs/guarding.md does not have lua/fenced.lua as it is")
	}
}
