//go:build linux || darwin || freebsd

package filelock

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/safefile"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// plant puts something where the lock file of a key will be, lets a Store try
// to lock it, and expects that it refuses and says why.
func plant(t *testing.T, why error, what func(path string) error) {
	t.Helper()
	u := in(t, t.TempDir(), nil)
	c := exclusive("key")
	path := filepath.Join(u.dir, fileName(c.Key))
	if err := what(path); err != nil {
		t.Fatal(err)
	}
	err := u.fails(c)
	if !errors.Is(err, why) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want it to name the file and say: %v", err, why)
	}
	if _, err := u.Holders(t.Context(), c.Key); !errors.Is(err, why) {
		t.Errorf("Holders says %v, want: %v", err, why)
	}
	refusedAtOnce(t, u.dir)
}

// A counter counts the calls to a Store.
type counter struct {
	*Store
	acquires, releases atomic.Int64
}

func (c *counter) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	c.acquires.Add(1)
	return c.Store.Acquire(ctx, a)
}

func (c *counter) Release(ctx context.Context, rs []driver.Release) []error {
	c.releases.Add(1)
	return c.Store.Release(ctx, rs)
}

// refusedAtOnce expects that a Locker tries once for each call, and has nothing to
// release when it is closed.
func refusedAtOnce(t *testing.T, dir string) {
	t.Helper()
	store := &counter{Store: must.Get(New(dir, nil))}
	locks := must.Get(holdfast.New(store, nil))
	defer locks.Close()
	for want, call := range []func(context.Context, string, ...holdfast.LockOption) (*holdfast.Lock, error){locks.TryLock, locks.Lock} {
		began := time.Now()
		if _, err := call(t.Context(), "key"); time.Since(began) > time.Second { // the limit of a try
			unproved.Logf(t, "that %s is refused at once", dir)
			return
		} else if !errors.Is(err, holdfast.ErrInvalid) || strings.Contains(err.Error(), driver.ErrInvalid.Error()) {
			t.Errorf("%s is refused with %v, want an ErrInvalid in words of its own", dir, err)
		}
		if n := store.acquires.Load(); n != int64(want)+1 {
			t.Errorf("%d tries for %d calls", n, want+1)
		}
	}
	if err := locks.Close(); err != nil || store.releases.Load() > 0 {
		t.Errorf("Close: %v after %d releases of what was never kept", err, store.releases.Load())
	}
}

// A damaged lock file, and folders that are not fit, stay so until somebody mends
// them.
func TestRefusedAtOnce(t *testing.T) {
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, fileName("key")), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusedAtOnce(t, damaged)
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	refusedAtOnce(t, open)
	refusedAtOnce(t, filepath.Join(damaged, fileName("key")))          // is no folder
	refusedAtOnce(t, filepath.Join(damaged, fileName("key"), "below")) // nor is what it is in
}

func TestBadOptions(t *testing.T) {
	if _, err := New(t.TempDir(), &Options{Mode: 0o755}); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "0600, 0660 or 0666") {
		t.Errorf("the mode 0755: %v", err)
	}
	if _, err := New("", nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("no directory: %v", err)
	}
}

func TestPlantedLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	plant(t, safefile.ErrSymlink, func(path string) error { return os.Symlink(outside, path) })
	plant(t, safefile.ErrSymlink, func(path string) error { return os.Symlink(missing, path) })
	plant(t, safefile.ErrSymlink, func(path string) error { return os.Symlink(path, path) })
	plant(t, safefile.ErrHardLink, func(path string) error { return os.Link(outside, path) })
	if b, err := os.ReadFile(outside); string(b) != "precious" {
		t.Errorf("the file outside now holds %q, %v", b, err)
	}
	if _, err := os.Lstat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file outside was made: %v", err)
	}
}

func TestPlantedThings(t *testing.T) {
	plant(t, safefile.ErrIrregular, func(path string) error { return os.Mkdir(path, 0o700) })
	plant(t, safefile.ErrIrregular, func(path string) error { return syscall.Mkfifo(path, 0o600) })
	plant(t, safefile.ErrIrregular, func(path string) error {
		t.Chdir(filepath.Dir(path)) // The path of a socket is short.
		l, err := net.Listen("unix", filepath.Base(path))
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
}

func TestPlantedByRoot(t *testing.T) {
	servers.NeedRoot(t, "make devices and give files away")
	const null = 1<<8 | 3
	plant(t, safefile.ErrIrregular, func(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o600, null) })

	dir := t.TempDir()
	path := filepath.Join(dir, fileName("key"))
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	if err := in(t, dir, nil).fails(exclusive("key")); !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("a file of another user is refused with %v", err)
	}
	refusedAtOnce(t, dir)
	in(t, dir, &Options{Mode: 0o660}).granted(exclusive("key"))
}

// A lock file gets a second name while it is in use.
func TestHardLinkMadeLater(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	c := exclusive("key")
	u.granted(c)
	path := filepath.Join(u.dir, fileName("key"))
	if err := os.Link(path, path+".copy"); err != nil {
		t.Fatal(err)
	}
	if err := u.renew(c); !errors.Is(err, safefile.ErrHardLink) {
		t.Errorf("Renew says %v, want %v", err, safefile.ErrHardLink)
	}
	if err := os.Remove(path + ".copy"); err != nil {
		t.Fatal(err)
	}
	u.release(c)
}

func TestDirectoryThatIsRefused(t *testing.T) {
	refused := func(dir, want string) {
		t.Helper()
		err := in(t, dir, nil).fails(exclusive("key"))
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Dir(dir)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s is refused with %v, want a line that says %q", dir, err, want)
		}
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	refused(open, "sticky bit")
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	in(t, open, nil).granted(exclusive("key"))

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(file, "is not a directory")
	refused(filepath.Join(file, "below"), "not a directory")

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	in(t, link, nil).granted(exclusive("key")) // The directory itself may be one.
}

func TestModes(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for mode, want := range map[os.FileMode]os.FileMode{
		0:     os.ModeDir | 0o700,
		0o660: os.ModeDir | os.ModeSetgid | 0o770,
		0o666: os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o777,
	} {
		u := in(t, filepath.Join(t.TempDir(), "locks"), &Options{Mode: mode})
		u.granted(exclusive("key"))
		if info, err := os.Stat(u.dir); err != nil || info.Mode() != want {
			t.Errorf("mode %#o makes the directory %v, %v; want %v", mode, info.Mode(), err, want)
		}
		if mode == 0 {
			mode = private
		}
		entries, err := os.ReadDir(u.dir)
		if err != nil || len(entries) != 2 {
			t.Fatalf("the directory holds %v, %v; want a lock file and a session", entries, err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode() != mode {
				t.Errorf("%s is %v, %v; want %v", entry.Name(), info.Mode(), err, mode)
			}
		}
	}
	// Existing files stay as they are.
	dir := t.TempDir()
	path := filepath.Join(dir, fileName("key"))
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	in(t, dir, &Options{Mode: 0o666}).granted(exclusive("key"))
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("a file that was there is now %v, %v", info.Mode(), err)
	}
}
