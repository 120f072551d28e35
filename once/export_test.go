package once

import "testing"

// Size returns how many records m keeps.
func Size(m *Memory) int { return len(m.records) }

// LockPart keeps others out of the part of the folder to which a key belongs.
func LockPart(t *testing.T, f *File, key string) (unlock func()) {
	p, err := f.enter(t.Context(), key, true)
	if err != nil {
		t.Fatal(err)
	}
	return p.leave
}

// PartOf returns the name of the part of a folder to which a key belongs.
func PartOf(key string) string { return partOf(key) }
