package register

import (
	"path/filepath"
	"sync"
	"testing"
)

func open(t *testing.T, path string, fenced bool, owner uint32) *Register {
	t.Helper()
	r, err := Open(path, fenced, owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func add(t *testing.T, r *Register, record Record) State {
	t.Helper()
	s, err := r.Append(record)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFencedRefusesSmallerTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	a, b := open(t, path, true, 1), open(t, path, true, 2)
	add(t, a, Record{Token: 5, Value: 50})
	if s := add(t, b, Record{Token: 4, Value: 40}); !s.Refused || s.Value != 50 {
		t.Errorf("a smaller token: %+v", s)
	}
	if s := add(t, b, Record{Token: 5, Value: 51}); s.Refused || s.Value != 51 {
		t.Errorf("the same token: %+v", s)
	}
	if s := add(t, b, Record{Token: 7}); s.Refused || s.Value != 51 {
		t.Errorf("a look: %+v", s)
	}
	if s := add(t, a, Record{Token: 6, Value: 60}); !s.Refused {
		t.Errorf("a token smaller than that of a look: %+v", s)
	}
	if s, err := a.Read(); err != nil || s.Value != 51 || s.Token != 7 {
		t.Errorf("read %+v, %v", s, err)
	}
}

func TestPlainTakesAnything(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "r"), false, 1)
	add(t, r, Record{Token: 5, Value: 50})
	if s := add(t, r, Record{Token: 4, Value: 40}); s.Refused || s.Value != 40 {
		t.Errorf("a smaller token: %+v", s)
	}
}

// Each append learns its own fate, however many there are at once.
func TestTogether(t *testing.T) {
	const writers, each = 8, 200
	path := filepath.Join(t.TempDir(), "r")
	var all sync.WaitGroup
	accepted := make([]int, writers)
	for w := range writers {
		r := open(t, path, true, uint32(w+1))
		all.Go(func() {
			for i := range each {
				s, err := r.Append(Record{Token: uint64(i), Value: uint64(w*each + i + 1)})
				if err != nil {
					t.Error(err)
					return
				}
				if !s.Refused {
					accepted[w]++
				}
			}
		})
	}
	all.Wait()
	records, err := Records(path)
	if err != nil || len(records) != writers*each {
		t.Fatalf("%d records, %v", len(records), err)
	}
	var s State
	want := make([]int, writers)
	for _, r := range records {
		if s = s.after(r, true); !s.Refused {
			want[r.mark>>32-1]++
		}
	}
	for w := range writers {
		if accepted[w] != want[w] {
			t.Errorf("writer %d was told that %d of its records count, and %d do", w, accepted[w], want[w])
		}
	}
}
