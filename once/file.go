package once

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/filename"
	"github.com/holdfast-go/holdfast/internal/flock"
)

// File keeps records in a folder, for the processes of a single user on a single host.
// Set Dir.
//
// Every record is a separate file. A new version is written beside the old file, synced
// to disk and then renamed. If the process or the machine dies during a write, either
// the old or the new record remains. During a call, an operating-system lock on a part
// of the folder, a 256th of the keys, keeps other processes out. A process that is
// stopped during a call keeps the part locked until the process continues or ends. The
// wall clock of the host decides when records expire.
//
// File refuses a record of a different user, or a link, FIFO or the like in place of a
// record. The error names the path.
type File struct {
	// Dir is the folder. A missing folder is created, for the current user only. Dir is
	// refused if the folder, or a folder above it, belongs to a user other than the
	// current user or root. Dir is also refused if other users may write to the folder
	// or replace it.
	Dir string

	// AllowNetwork accepts a folder on a network file system. Locks on a network file
	// system are only as good as the locks of its server.
	AllowNetwork bool

	mu   sync.Mutex
	safe string // the path of the folder, with links resolved, once found safe
}

var _ Records = (*File)(nil)

// Load implements [Records].
func (f *File) Load(ctx context.Context, key string) (Record, error) {
	p, err := f.enter(ctx, key, false)
	if err != nil {
		return Record{}, err
	}
	defer p.leave()
	k, err := p.load()
	return k.Record, err
}

// Begin implements [Records].
func (f *File) Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (Record, error) {
	return f.change(ctx, key, func(before kept, now time.Time) (kept, bool, error) {
		r, changed, err := before.AfterBegin(key, token, fingerprint)
		return kept{r, now.Add(keep)}, changed, err
	})
}

// Finish implements [Records].
func (f *File) Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	_, err := f.change(ctx, key, func(before kept, now time.Time) (kept, bool, error) {
		r, changed, err := before.AfterFinish(key, token, result)
		return kept{r, now.Add(keep)}, changed, err
	})
	return err
}

// Forget implements [Records].
func (f *File) Forget(ctx context.Context, key string, token uint64) error {
	_, err := f.change(ctx, key, func(before kept, _ time.Time) (kept, bool, error) {
		r, changed, err := before.AfterForget(key, token)
		return kept{r, before.until}, changed, err
	})
	return err
}

// change writes the record that next returns, if next has changed it, and returns the
// record.
func (f *File) change(ctx context.Context, key string, next func(before kept, now time.Time) (after kept, changed bool, err error)) (Record, error) {
	p, err := f.enter(ctx, key, true)
	if err != nil {
		return Record{}, err
	}
	defer p.leave()
	before, err := p.load()
	if err != nil {
		return Record{}, err
	}
	after, changed, err := next(before, p.now)
	if changed {
		if before.Token == 0 {
			p.sweep()
		}
		err = p.save(after)
	}
	return after.Record, err
}

// folder returns the path of the folder, and creates a missing folder. An unsafe folder
// is refused.
func (f *File) folder() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.safe != "" {
		return f.safe, nil
	}
	if f.Dir == "" {
		return "", errors.New("File.Dir is not set: name a folder")
	}
	if err := makeFolder(f.Dir); err != nil {
		return "", err
	}
	safe, err := safeFolder(f.Dir, f.AllowNetwork)
	f.safe = safe
	return safe, err
}

// A part is a locked part of the folder. The call has exclusive access, or shares the
// part with other readers.
type part struct {
	key, dir, path string
	lock           *os.File
	now            time.Time
}

const filePrefix = "once-"

// enter locks the part of the folder that contains the key.
func (f *File) enter(ctx context.Context, key string, alone bool) (*part, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := f.folder()
	if err != nil {
		return nil, err
	}
	p := &part{key: key, dir: filepath.Join(dir, partOf(key))}
	p.path = filepath.Join(p.dir, filename.Of(filePrefix, key))
	if p.lock, err = openLock(p.dir); err != nil {
		return nil, err
	}
	const shortest, longest = 100 * time.Microsecond, 5 * time.Millisecond
	for pause := shortest; ; pause = min(2*pause, longest) {
		ok, err := flock.Try(p.lock.Fd(), alone)
		if ok {
			p.now = time.Now()
			return p, nil
		}
		if err == nil {
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
				err = fmt.Errorf("another process is using it: %w", ctx.Err())
			}
		}
		p.leave()
		return nil, &fs.PathError{Op: "lock", Path: p.lock.Name(), Err: err}
	}
}

// partOf is the name of the part of the folder for a key.
func partOf(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return fmt.Sprintf("%02x", h.Sum32()>>24)
}

// openLock opens the lock file of a part. The lock file is never removed.
func openLock(dir string) (*os.File, error) {
	err := safePart(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return nil, err
		}
		err = safePart(dir)
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	file, err := openFile(path, true)
	if errors.Is(err, fs.ErrNotExist) {
		if file, err = createFile(path); errors.Is(err, fs.ErrExist) { // by another process
			return openFile(path, true)
		}
	}
	return file, err
}

// leave releases the part: closing the file unlocks it.
func (p *part) leave() { _ = p.lock.Close() }

// load reads the record of the key, unless the record has expired.
func (p *part) load() (kept, error) {
	key, k, err := readKept(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return kept{}, nil
	case err != nil:
		return kept{}, err
	case key != p.key:
		return kept{}, damaged(p.path, fmt.Errorf("it is that of the key %q", key))
	case !p.now.Before(k.until):
		return kept{}, nil
	}
	return k, nil
}

// save writes the record beside the old file, then renames the new file into place. A
// file left beside the record, by a dead process or a different user, is removed and
// never written to.
func (p *part) save(k kept) error {
	beside := p.path + ".new"
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeKept(beside, p.key, k); err != nil {
		return err
	}
	if err := os.Rename(beside, p.path); err != nil {
		return err
	}
	return syncDir(p.dir)
}

// sweep removes the expired records of this part of the folder, in one call out of
// eight. Reading many names takes time.
func (p *part) sweep() {
	if rand.IntN(8) > 0 {
		return
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return // A later call will sweep, and nothing depends on it.
	}
	for _, entry := range entries {
		path := filepath.Join(p.dir, entry.Name())
		if !strings.HasPrefix(entry.Name(), filePrefix) || path == p.path {
			continue
		}
		// The file's modification time is the expiry, which saves reading the file. A
		// copied file may have a different time, so the record is read before the
		// removal.
		if info, err := entry.Info(); err != nil || p.now.Before(info.ModTime()) {
			continue
		}
		if _, k, err := readKept(path); err == nil && !p.now.Before(k.until) || strings.HasSuffix(path, ".new") {
			_ = os.Remove(path)
		}
	}
}
