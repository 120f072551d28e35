package servers

import (
	"os"
	"path/filepath"
	"testing"
)

// Go makes the folders of tests in GOTMPDIR. If root runs the tests, the account of a
// server can enter them there, too.
func TestFoldersElsewhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GOTMPDIR", "TMPDIR"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, filepath.Join(dir, name))
	}
	t.Run("server", func(t *testing.T) { StartMemcached(t).Must("mn", "MN") })
}
