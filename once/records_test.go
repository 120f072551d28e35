package once_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/once/oncetest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	var all sync.Map
	oncetest.Run(t, oncetest.Harness{Bubble: true, Open: func(t testing.TB) once.Records {
		m, _ := all.LoadOrStore(t, &once.Memory{})
		return m.(once.Records)
	}})
}

func TestFileKeepsTheContract(t *testing.T) {
	var dirs sync.Map
	oncetest.Run(t, oncetest.Harness{Open: func(t testing.TB) once.Records {
		dir, _ := dirs.LoadOrStore(t, filepath.Join(t.TempDir(), "new", "records"))
		return &once.File{Dir: dir.(string)}
	}})
}

func begin(t *testing.T, f *once.File, key string, keep time.Duration) {
	t.Helper()
	if r, err := f.Begin(t.Context(), key, 1, "", keep); err != nil || r.State != once.Begun {
		t.Fatal(r, err)
	}
}

// files returns the paths of the files of records.
func files(t *testing.T, f *once.File) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(f.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), "once-") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestFilesAreSwept(t *testing.T) {
	bubble(t, func(d *desk) {
		f := &once.File{Dir: d.TempDir()}
		begin(d.T, f, "kept", 24*time.Hour)
		number := 0
		next := func(keep time.Duration) { // of the same part of the folder
			for {
				if number++; once.PartOf(fmt.Sprint(number)) == once.PartOf("kept") {
					begin(d.T, f, fmt.Sprint(number), keep)
					return
				}
			}
		}
		for range 50 {
			next(time.Second)
		}
		// A process has died while it wrote, and another has left what is not ours.
		old := files(d.T, f)
		foreign := filepath.Join(filepath.Dir(old[0]), "foreign")
		for _, path := range []string{old[0] + ".new", foreign} {
			d.must(os.WriteFile(path, []byte("{"), 0o600))
			d.must(os.Chtimes(path, time.Now(), time.Now()))
		}
		copied := filepath.Join(f.Dir, once.PartOf("kept"), "once-kept")
		d.must(os.Chtimes(copied, time.Now(), time.Now()))
		time.Sleep(time.Minute)
		for n := 1; len(files(d.T, f)) != n; n++ {
			if n > 1000 {
				d.Fatalf("there are %d files, of %d records that live", len(files(d.T, f)), n)
			}
			next(time.Hour)
		}
		for _, path := range []string{copied, foreign} {
			_, err := os.Stat(path)
			d.must(err)
		}
	})
}

func TestFolderThatIsRefused(t *testing.T) {
	refused := func(f *once.File, want string) {
		t.Helper()
		if _, err := f.Load(t.Context(), "key"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is refused with %v, want it to say %q", f.Dir, err, want)
		}
	}
	refused(&once.File{}, "File.Dir is not set")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(&once.File{Dir: file}, "is not a folder")
	if runtime.GOOS == "windows" {
		return // Permissions are others there.
	}
	for _, mode := range []fs.FileMode{0o770, 0o777, 0o777 | fs.ModeSticky} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		refused(&once.File{Dir: dir}, "others may write")
	}
	dir := filepath.Join(t.TempDir(), "new")
	begin(t, &once.File{Dir: dir}, "key", time.Hour)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it makes %v, %v; want 0700", info.Mode(), err)
	}
}

func TestDamagedFile(t *testing.T) {
	f := &once.File{Dir: t.TempDir()}
	begin(t, f, "key", time.Hour)
	path := files(t, f)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", string(whole[:len(whole)/2]), strings.Replace(string(whole), "key", "kee", 2)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, loaded := f.Load(t.Context(), "key")
		_, begun := f.Begin(t.Context(), "key", 2, "", time.Hour)
		for _, err := range []error{loaded, begun, f.Finish(t.Context(), "key", 2, nil, time.Hour), f.Forget(t.Context(), "key", 2)} {
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%q: %v, want it to name the file", text, err)
			}
		}
	}
}

// A process is in the midst of a write and does not come out.
func TestPartThatIsBusy(t *testing.T) {
	bubble(t, func(d *desk) {
		f := &once.File{Dir: d.TempDir()}
		begin(d.T, f, "key", time.Hour)
		unlock := once.LockPart(d.T, f, "key")
		ctx, cancel := context.WithTimeout(d.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := f.Load(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), f.Dir) {
			d.Errorf("%v, want the end of the context, and the file", err)
		}
		unlock()
		begin(d.T, f, "key", time.Hour)
	})
}
