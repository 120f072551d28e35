//go:build unix

package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	_ "github.com/holdfast-go/holdfast/filelock"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
)

// A folder may be called whatever the system allows.
func TestFolderNames(t *testing.T) {
	for _, name := range []string{"x[1]", "100%", "a#b c", "a?b", "%41*"} {
		folder := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		want := []string{filepath.Join(folder, "parent.jsonl"), filepath.Join(folder, "worker0.1.jsonl")}
		for _, path := range append([]string{filepath.Join(folder, "key0.plain")}, want...) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := histories(folder); err != nil || !slices.Equal(got, want) {
			t.Errorf("the histories in %s are %q, %v", folder, got, err)
		}
		for engine, made := range map[string]string{"file": "locks", "sqlite": "locks.db"} {
			s, err := starterOf(engine)
			if err != nil {
				t.Fatal(err)
			}
			store, err := driver.Open(t.Context(), s.start(&room{TB: t, folder: folder}, 0).url)
			if err != nil {
				t.Errorf("%s in %s: %v", engine, folder, err)
				continue
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(folder, made)); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := histories(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is missing has histories")
	}
}

// A store that hangs does not hang the run.
func TestPatience(t *testing.T) {
	for _, started := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := (&target{started: started}).patiently(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > time.Hour {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}
