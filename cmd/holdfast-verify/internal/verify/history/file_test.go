package history

import (
	"os"
	"path/filepath"
	"testing"
)

func events(t *testing.T, path string) (all []Event, failed error) {
	t.Helper()
	for e, err := range Read(path) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	w, err := Create(path, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	e := Event{At: Now(), Kind: Got, Client: 1, Op: 7, Key: "k", Token: 1<<63 + 1, Until: 5}
	w.Add(e)
	w.Add(Event{At: 1, Kind: Bye})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	e.Worker, e.Life = 2, 3
	all, err := events(t, path)
	if err != nil || len(all) != 2 || all[0] != e {
		t.Errorf("read %+v, %v", all, err)
	}
	if _, err := Create(path, 2, 3); err == nil {
		t.Error("two processes may write one file")
	}
}

// A process that is killed may leave half a line.
func TestReadLastWord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{\"at\":1,\"kind\":\"bye\"}\n{\"at\":2,\"ki")
	if all, err := events(t, path); err != nil || len(all) != 1 {
		t.Errorf("read %+v, %v", all, err)
	}
	write("{\"at\":1,\"ki\n{\"at\":2,\"kind\":\"bye\"}\n")
	if _, err := events(t, path); err == nil {
		t.Error("a line in the middle is damaged, and nobody says so")
	}
}
