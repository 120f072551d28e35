package dirwatch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func start(t *testing.T, want Events) (dir string, next func() map[string]bool) {
	t.Helper()
	dir = t.TempDir()
	w, err := New(dir, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return dir, func() map[string]bool {
		t.Helper()
		if err := w.Limit(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		names, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
}

func TestWritten(t *testing.T) {
	dir, next := start(t, Written)
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if more, ok := next()["file"]; !more || !ok {
		t.Error("a new file counts as a write, or not at all")
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if more, ok := next()["file"]; more || !ok {
		t.Error("a write counts as more than that, or not at all")
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if !next()["file"] {
		t.Error("a removal counts as a write, or not at all")
	}
}

func TestClosed(t *testing.T) {
	dir, next := start(t, Closed)
	if err := os.WriteFile(filepath.Join(dir, "first"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if names := next(); len(names) != 1 || names["first"] {
		t.Errorf("told %v of a file that was closed", names)
	}
}

func TestEnds(t *testing.T) {
	dir := t.TempDir()
	w, err := New(dir, Written)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Limit(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at its limit: %v", err)
	}
	if err := errors.Join(w.Limit(time.Time{}), os.Remove(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Next(); !errors.Is(err, ErrGone) {
		t.Errorf("of a directory that is gone: %v", err)
	}
	w.Close()
	if _, err := w.Next(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
