package servers

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTemplate(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	made := 0
	tmpl := template{program: program, make: func(data string) error {
		made++
		return errors.Join(
			os.MkdirAll(filepath.Join(data, "full", "empty"), 0o755),
			os.WriteFile(filepath.Join(data, "full", "file"), []byte("text"), 0o644))
	}}
	for range 3 {
		data := filepath.Join(t.TempDir(), "data")
		if err := tmpl.fill(data); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(data, "full", "file")); string(text) != "text" || err != nil {
			t.Errorf("the file has %q, %v", text, err)
		}
		if _, err := os.Stat(filepath.Join(data, "full", "empty")); err != nil {
			t.Error(err)
		}
		// A change in one folder is none in the next.
		if err := os.WriteFile(filepath.Join(data, "full", "file"), []byte("changed"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times, want once", made)
	}
	tmpl.terms = []string{"others"}
	if err := tmpl.fill(filepath.Join(t.TempDir(), "data")); err != nil || made != 2 {
		t.Errorf("with other terms: made %d times, want twice; %v", made, err)
	}
}

// A cache that cannot take a template costs a test nothing but time. A link to nothing
// cannot be copied, as if the disk were full halfway.
func TestTemplateIsNotKept(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, cache := range map[string]string{"no folder": program, "half a copy": t.TempDir()} {
		t.Setenv("XDG_CACHE_HOME", cache)
		made := 0
		tmpl := template{program: program, make: func(data string) error {
			made++
			return errors.Join(
				os.Mkdir(data, 0o755),
				os.WriteFile(filepath.Join(data, "file"), []byte("text"), 0o644),
				os.Symlink("nowhere", filepath.Join(data, "hole")))
		}}
		for range 2 {
			data := filepath.Join(t.TempDir(), "data")
			if err := tmpl.fill(data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if text, err := os.ReadFile(filepath.Join(data, "file")); string(text) != "text" {
				t.Errorf("%s: the file has %q, %v", name, text, err)
			}
		}
		if made != 2 {
			t.Errorf("%s: made %d times, want twice", name, made)
		}
		if left, err := filepath.Glob(filepath.Join(cache, "holdfast-servers", "*")); len(left) > 0 || err != nil {
			t.Errorf("%s: left in the cache: %q, %v", name, left, err)
		}
	}
}
