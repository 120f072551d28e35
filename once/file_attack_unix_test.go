//go:build linux || darwin || freebsd

package once_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/once"
)

const stranger = 12345

func succeed(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// refused expects that no call uses the folder, and that the errors name a path and
// say why.
func refused(t *testing.T, dir, path string, why ...string) {
	t.Helper()
	f := &once.File{Dir: dir}
	_, loaded := f.Load(t.Context(), "key")
	_, begun := f.Begin(t.Context(), "key", 2, "", time.Hour)
	for _, err := range []error{loaded, begun, f.Forget(t.Context(), "key", 2)} {
		for _, want := range append(why, path) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s is refused with %v, want it to say %q", dir, err, want)
			}
		}
	}
}

// The owner of the folder, or a user who may replace the folder, could forge every result.
func TestFolderOfAnother(t *testing.T) {
	servers.NeedRoot(t, "give files away")
	theirs := filepath.Join(t.TempDir(), "theirs")
	succeed(t, os.Mkdir(theirs, 0o700), os.Chown(theirs, stranger, stranger))
	refused(t, theirs, theirs, "belongs to user 12345", "use a folder of this user")

	ours, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	succeed(t, os.Symlink(ours, link))
	begin(t, &once.File{Dir: link}, "key", time.Hour) // The folder itself may be a link.
	succeed(t, os.Lchown(link, stranger, stranger))
	refused(t, link, link, "belongs to user 12345", "use a folder of this user")
	link = filepath.Join(t.TempDir(), "link")
	succeed(t, os.Symlink(theirs, link))
	refused(t, link, theirs, "belongs to user 12345")
}

func TestParentForAll(t *testing.T) {
	parent := t.TempDir()
	succeed(t, os.Chmod(parent, 0o777|fs.ModeSticky))
	dir := filepath.Join(parent, "below", "records")
	begin(t, &once.File{Dir: dir}, "key", time.Hour)
	if os.Geteuid() == 0 { // Another was first.
		succeed(t, os.RemoveAll(dir), os.Mkdir(dir, 0o777), os.Chown(dir, stranger, stranger))
		refused(t, dir, dir, "belongs to user 12345")
		succeed(t, os.Chown(dir, 0, 0))
	}
	succeed(t, os.Chmod(parent, 0o777))
	refused(t, dir, parent, "every user may replace", "chmod +t")
}

// The owner of a parent may replace the folder, also if the parent is sticky.
func TestParentOfAnother(t *testing.T) {
	servers.NeedRoot(t, "give files away")
	for _, mode := range []fs.FileMode{0o755, 0o777 | fs.ModeSticky} {
		parent := filepath.Join(t.TempDir(), "theirs")
		dir := filepath.Join(parent, "below", "records")
		succeed(t, os.MkdirAll(dir, 0o700), os.Chmod(parent, mode), os.Chown(parent, stranger, stranger))
		refused(t, dir, parent, "belongs to user 12345", "who may replace", "use a folder of this user")
	}
}

// plants are what another user may put in the place of a file, in a folder that was
// open to that user once.
func plants(t *testing.T) (plants map[string]func(path string) error, outside string) {
	outside = filepath.Join(t.TempDir(), "outside")
	succeed(t, os.WriteFile(outside, []byte("precious"), 0o600))
	t.Cleanup(func() {
		if b, err := os.ReadFile(outside); string(b) != "precious" {
			t.Errorf("the file outside now holds %q, %v", b, err)
		}
	})
	plants = map[string]func(path string) error{
		"symbolic link":      func(path string) error { return os.Symlink(outside, path) },
		"hard link":          func(path string) error { return os.Link(outside, path) },
		"not a regular file": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	}
	if os.Geteuid() == 0 {
		plants["belongs to user 12345"] = func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, stranger, stranger))
		}
	}
	return plants, outside
}

// A record, or the lock of its part of the folder, that somebody has planted is
// refused by name.
func TestPlantedFiles(t *testing.T) {
	all, _ := plants(t)
	for why, plant := range all {
		for _, name := range []string{"once-key", "lock"} {
			f := &once.File{Dir: t.TempDir()}
			begin(t, f, "key", time.Hour)
			path := filepath.Join(f.Dir, once.PartOf("key"), name)
			succeed(t, os.Remove(path), plant(path))
			refused(t, f.Dir, path, why, "remove it")
		}
	}
	dir := t.TempDir()
	part := filepath.Join(dir, once.PartOf("key"))
	succeed(t, os.Symlink(t.TempDir(), part))
	refused(t, dir, part, "symbolic link", "remove it")
}

// A file planted in the place of a record's temporary file is removed, like the remains of
// a dead process, and never written to.
func TestPlantedBeside(t *testing.T) {
	all, outside := plants(t)
	all["dangling"] = func(path string) error { return os.Symlink(outside+".new", path) }
	for why, plant := range all {
		f := &once.File{Dir: t.TempDir()}
		begin(t, f, "key", time.Hour)
		succeed(t, plant(filepath.Join(f.Dir, once.PartOf("key"), "once-key.new")))
		if err := f.Finish(t.Context(), "key", 1, []byte("result"), time.Hour); err != nil {
			t.Errorf("%s: %v", why, err)
		}
		if r, err := f.Load(t.Context(), "key"); err != nil || string(r.Result) != "result" {
			t.Errorf("%s: %v, %v", why, r, err)
		}
		for _, path := range files(t, f) {
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 || fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid) != fmt.Sprint(os.Geteuid()) {
				t.Errorf("%s: %s is %v, %v", why, path, info.Mode(), err)
			}
		}
	}
	if _, err := os.Lstat(outside + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file outside was made: %v", err)
	}
}
