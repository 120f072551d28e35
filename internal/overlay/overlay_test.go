package overlay_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/overlay"
)

func TestWrite(t *testing.T) {
	root, folder := t.TempDir(), t.TempDir()
	for _, name := range []string{"a/x.go", "b/x.go", "b/y.go"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("one two two "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := overlay.Write(folder, overlay.In(root, []overlay.Edit{
		{File: "a/x.go", Old: "one two", New: "three"},
		{File: "a/x.go", Old: "three two", New: "four"},
		{File: "b/x.go", Old: "one ", New: ""},
	}))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(list)
	var read struct{ Replace map[string]string }
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err != nil || len(read.Replace) != 2 {
		t.Fatalf("%s, %v; want two files", data, err)
	}
	for name, want := range map[string]string{"a/x.go": "four a/x.go", "b/x.go": "two two b/x.go"} {
		if text, err := os.ReadFile(read.Replace[filepath.Join(root, name)]); string(text) != want || err != nil {
			t.Errorf("%s has become %q, %v; want %q", name, text, err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "a/x.go")); string(text) != "one two two a/x.go" || err != nil {
		t.Errorf("the file itself has become %q, %v", text, err)
	}
}

// A text that has moved is named, with its file.
func TestTextThatIsNotThereOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	if err := os.WriteFile(file, []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for old, times := range map[string]string{"three": "0 times", "two": "2 times"} {
		_, err := overlay.Write(t.TempDir(), []overlay.Edit{{File: file, Old: old}})
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), times) || !strings.Contains(err.Error(), old) {
			t.Errorf("%q: %v; want an error that has the file, the text and %q", old, err, times)
		}
	}
}
