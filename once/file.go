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
	"github.com/holdfast-go/holdfast/internal/netfs"
)

// File keeps records in a folder, for the processes of one user on one host. Set
// Dir.
//
// A record is a file of its own, which is written beside, brought to the disk and
// then renamed: a process or a machine that ends in the midst of it leaves the old
// record or the new one. The system's lock on a part of the folder keeps all others
// out meanwhile; one that is stopped right then keeps that part, a 256th of the keys,
// until it goes on or ends. The wall clock of the host counts the time of records.
type File struct {
	// Dir is the folder. It is made if it is missing, for this user alone, and
	// refused if others may write to it.
	Dir string

	// AllowNetwork accepts a folder on a network file system, whose locks are
	// only as good as its server's.
	AllowNetwork bool

	mu    sync.Mutex
	ready bool // the folder was looked at
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

// change writes what next makes of a record, if that is a change, and returns it.
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

// prepare makes the folder, and refuses one in which records would not be safe.
func (f *File) prepare() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ready {
		return nil
	}
	if f.Dir == "" {
		return errors.New("File.Dir is not set: name a folder")
	}
	info, err := os.Stat(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(f.Dir, 0o700); err != nil {
			return err
		}
		if err := syncDir(filepath.Dir(f.Dir)); err != nil {
			return err
		}
		info, err = os.Stat(f.Dir)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", f.Dir)
	}
	if filepath.Separator == '/' && info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to %s: use a folder of this user alone (chmod go-w)", f.Dir)
	}
	if kind := netfs.Kind(f.Dir); kind != "" && !f.AllowNetwork {
		return fmt.Errorf("%s is on a network file system (%s), where locks are only as good as its server's: use a local folder, or accept that with File.AllowNetwork", f.Dir, kind)
	}
	f.ready = true
	return nil
}

// A part is a part of the folder in which this call is alone, or with others that
// only read.
type part struct {
	key, dir, path string
	lock           *os.File
	now            time.Time
}

const filePrefix = "once-"

// enter locks the part of the folder to which a key belongs.
func (f *File) enter(ctx context.Context, key string, alone bool) (*part, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.prepare(); err != nil {
		return nil, err
	}
	p := &part{key: key, dir: filepath.Join(f.Dir, partOf(key))}
	p.path = filepath.Join(p.dir, filename.Of(filePrefix, key))
	var err error
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

// openLock opens the file that is locked for a part. It is never removed.
func openLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return nil, err
		}
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	return file, err
}

// leave lets others in: closing the file unlocks it.
func (p *part) leave() { _ = p.lock.Close() }

// load reads the record of the key, unless its time is over.
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

// save writes the record beside the old one and puts it in its place.
func (p *part) save(k kept) error {
	beside := p.path + ".new"
	if err := writeKept(beside, p.key, k); err != nil {
		return err
	}
	if err := os.Rename(beside, p.path); err != nil {
		return err
	}
	return syncDir(p.dir)
}

// sweep removes what this part of the folder has of records whose time is over,
// one time in eight: reading the names takes its time where there are many.
func (p *part) sweep() {
	if rand.IntN(8) > 0 {
		return
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return // Another will, and nothing depends on it.
	}
	for _, entry := range entries {
		path := filepath.Join(p.dir, entry.Name())
		if !strings.HasPrefix(entry.Name(), filePrefix) || path == p.path {
			continue
		}
		// The time of a file says when it is over, and spares reading it. But that
		// may be that of a copy.
		if info, err := entry.Info(); err != nil || p.now.Before(info.ModTime()) {
			continue
		}
		if _, k, err := readKept(path); err == nil && !p.now.Before(k.until) || strings.HasSuffix(path, ".new") {
			_ = os.Remove(path)
		}
	}
}
