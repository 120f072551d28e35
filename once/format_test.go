package once_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/once"
)

// recordFile returns the path of the only record in a folder.
func recordFile(t *testing.T, dir string) (path string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "once-") {
			path = at
		}
		return err
	})
	if err != nil || path == "" {
		t.Fatalf("no record in %s: %v", dir, err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A change of the format needs another number, and a release that reads it before one that
// writes it.
func TestGoldenFile(t *testing.T) {
	t.Parallel()
	records := &once.File{Dir: t.TempDir()}
	if _, err := records.Begin(t.Context(), "key", 7, "print", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := records.Finish(t.Context(), "key", 7, []byte("result"), time.Hour); err != nil {
		t.Fatal(err)
	}
	path := recordFile(t, records.Dir)
	golden := readFile(t, "testdata/done.json")
	if got := regexp.MustCompile(`"until":"[^"]*"`).ReplaceAllString(readFile(t, path), `"until":"2999-12-31T00:00:00Z"`); got != golden {
		t.Errorf("this release writes\n%s\nand testdata has\n%s", got, golden)
	}
	if err := os.WriteFile(path, []byte(golden), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := records.Load(t.Context(), "key"); err != nil || r.State != once.Done || r.Token != 7 || r.Fingerprint != "print" || string(r.Result) != "result" {
		t.Errorf("the record of testdata is %+v, %v", r, err)
	}

	later := strings.Replace(golden, `"format":1`, `"format":2`, 1)
	later = strings.Replace(later, `"state":2`, `"state":"done"`, 1)
	if err := os.WriteFile(path, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	refusesNewer(t, records, "key")
	if got := readFile(t, path); got != later {
		t.Errorf("the record of a newer release has changed to %s", got)
	}
}

// refusesNewer checks that every method refuses the record of a newer release.
func refusesNewer(t *testing.T, records once.Records, key string) {
	t.Helper()
	_, loaded := records.Load(t.Context(), key)
	_, begun := records.Begin(t.Context(), key, 9, "print", time.Hour)
	for name, err := range map[string]error{
		"Load": loaded, "Begin": begun,
		"Finish": records.Finish(t.Context(), key, 7, []byte("other"), time.Hour),
		"Forget": records.Forget(t.Context(), key, 9),
	} {
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "format 2") {
			t.Errorf("%s: %v, want an ErrInvalid that names the format", name, err)
		}
	}
}
