package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A disk that was full for a moment leaves holes in a history, and says where.
func TestReadWithAHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parent.jsonl")
	text := `{"at":1,"kind":"fault","worker":-1,"op":1,"mode":"flush"}
{"at":2,"kind":"heal","worker":-1,"op":1}
{"at":4,"kind":"heal","worker":-1,"op":2}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), []string{path}); err == nil || !strings.Contains(err.Error(), path+":3: fault 2 is over") {
		t.Errorf("got %v", err)
	}
}
