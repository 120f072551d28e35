package filelock_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A Lock that waits already, and one that comes later, fail. They do not wait for a release
// that they could not see.
func TestLockBesideANewerRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func() *holdfast.Locker {
		locks, err := holdfast.Open(ctx, "file://"+dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { locks.Close() })
		return locks
	}
	locks, other := open(), open()
	held, err := other.Lock(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	waits := make(chan error, 1)
	go func() {
		_, err := locks.Lock(ctx, "key")
		waits <- err
	}()
	servers.Until(t, "a waiter", func() bool {
		holders, err := other.Holders(ctx, "key")
		return err == nil && len(holders) == 2
	})
	files, err := filepath.Glob(filepath.Join(dir, "lock-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v; want one file", files, err)
	}
	filelock.Later(t, files[0])
	_, later := locks.Lock(ctx, "key")
	_, tried := locks.TryLock(ctx, "key")
	for call, err := range map[string]error{"waiting": <-waits, "later": later, "TryLock": tried} {
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), `record of key "key" has format 2`) {
			t.Errorf("%s: %v, want an ErrInvalid that names key and format", call, err)
		}
	}
}
