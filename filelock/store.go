package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Store keeps claims in the files of a directory. Its methods may be called concurrently.
type Store struct {
	dir     string
	opts    Options
	maxOpen int // lock files kept open while no call uses them

	mu        sync.Mutex
	files     map[string]*file // by key
	closed    bool
	checked   atomic.Bool // the directory is fit
	found     atomic.Pointer[os.FileInfo]
	onNetwork atomic.Bool // the file system reports only the events of this host

	session    atomic.Pointer[session]
	watcher    watcher
	background sync.WaitGroup
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

var errClosed = errors.New("the file lock store is closed")

// New returns a Store over a directory. The first use checks the directory, and creates
// it if it is missing. nil means the default options. Bad options, or no directory, are
// [driver.ErrInvalid].
func New(dir string, opts *Options) (*Store, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: the store of file locks has no directory", driver.ErrInvalid)
	}
	dir, err := filepath.Abs(dir) // The process may change its working directory.
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, maxOpen: keepOpen(openLimit()), files: make(map[string]*file)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Mode == 0 {
		s.opts.Mode = private
	}
	if err := checkMode(s.opts.Mode); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	if s.opts.Clock == nil {
		s.opts.Clock = time.Now
	}
	s.watcher.init(s)
	return s, nil
}

// ready checks ctx always, and the directory until it is found fit.
func (s *Store) ready(ctx context.Context) error {
	if s.checked.Load() {
		return ctx.Err()
	}
	info, kind, err := prepareDir(s.dir, s.opts)
	if err != nil {
		return err
	}
	if kind != "" {
		s.onNetwork.Store(true)
	}
	s.checked.Store(true)
	if old := s.found.Swap(&info); old != nil && !os.SameFile(*old, info) {
		s.watcher.restart()
	}
	return ctx.Err()
}

// Acquire requests a claim, as driver.Store describes.
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := check(a.Claim); err != nil {
		return driver.Grant{}, err
	}
	sec, err := s.enter(ctx, a.Key, true)
	if err != nil {
		return driver.Grant{}, s.refusal(err)
	}
	if sec.held(a.ID) == nil && !sec.inQueue(a.ID) {
		sec.limit = maxNewText
	}
	floor := sec.Floor
	g, err := sec.acquire(a)
	name := sec.file.name
	switch saved := sec.leave(ctx); {
	case errors.Is(saved, errTooLong):
		return driver.Grant{Floor: floor}, nil // There is no room for the claim now; there may be soon.
	case err != nil || saved != nil:
		return driver.Grant{}, errors.Join(err, saved)
	}
	if g.OK {
		s.watcher.track(name, a.Key, a.ID)
	}
	return g, nil
}

func (sec *section) acquire(a driver.Ask) (driver.Grant, error) {
	session, err := sec.store.own(sec.here.Now)
	if err != nil {
		return driver.Grant{}, err
	}
	g, err := sec.Acquire(sec.here.Moment, a, session)
	sec.note()
	if err == nil && !g.OK && sec.prune() {
		g, err = sec.Acquire(sec.here.Moment, a, session)
		sec.note()
	}
	if g.OK {
		sec.claim(a.ID, session)
	}
	if g.Left > forever/2 {
		g.Left, g.Holder.Left = 0, 0
	}
	return g, err
}

// claim moves a held claim to a session, which may be newer than the session of the
// Acquire.
func (sec *section) claim(id, session string) {
	if e := sec.held(id); e != nil && !e.Left {
		e.Session = session
	}
}

func check(c driver.Claim) error {
	if c.TTL > 366*24*time.Hour { // keeps times apart from forever
		return fmt.Errorf("%w: a TTL of %v (want at most a year)", driver.ErrInvalid, c.TTL)
	}
	return checkKey(c.Key)
}

func checkKey(key string) error {
	if key == "" || len(key) > driver.MaxKey {
		return fmt.Errorf("%w: a key of %d bytes (want 1 to %d)", driver.ErrInvalid, len(key), driver.MaxKey)
	}
	return nil
}

// Renew extends claims, as driver.Store describes.
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	return each(rs, func(r driver.Renewal) error { return s.renew(ctx, r) })
}

func (s *Store) renew(ctx context.Context, r driver.Renewal) error {
	if err := check(r.Claim); err != nil {
		return err
	}
	sec, err := s.enter(ctx, r.Key, false)
	if err != nil {
		return lostIfGone(err)
	}
	session, err := sec.store.own(sec.here.Now)
	if err != nil {
		return errors.Join(err, sec.leave(ctx))
	}
	lost := sec.Renew(sec.here.Moment, r)
	sec.note()
	sec.claim(r.ID, session)
	name := sec.file.name
	if err := sec.leave(ctx); err != nil {
		return err
	}
	if lost != nil || r.Leave {
		s.watcher.untrack(name, r.ID)
	} else {
		s.watcher.track(name, r.Key, r.ID)
	}
	return lost
}

// Release ends claims, as driver.Store describes.
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	return each(rs, func(r driver.Release) error { return s.release(ctx, r) })
}

func (s *Store) release(ctx context.Context, r driver.Release) error {
	sec, err := s.enter(ctx, r.Key, r.Late)
	if err != nil {
		return lostIfGone(err)
	}
	s.watcher.untrack(sec.file.name, r.ID) // before other processes can see the release
	lost := sec.Release(sec.here.Moment, r)
	sec.note()
	if err := sec.leave(ctx); err != nil {
		return err
	}
	return lost
}

// maxParallel is how many files a call for many claims waits for at a time. One busy section
// therefore does not hold up the remaining claims.
const maxParallel = 16

// each calls f for every renewal or release and returns the errors, nil if there are none.
func each[R any](rs []R, f func(R) error) []error {
	if len(rs) == 1 {
		if err := f(rs[0]); err != nil {
			return []error{err}
		}
		return nil
	}
	errs := make([]error, len(rs))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(rs), maxParallel) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(rs)); i = next.Add(1) - 1 {
				errs[i] = f(rs[i])
			}
		})
	}
	all.Wait()
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// lostIfGone turns a missing lock file into the loss of the claim.
func lostIfGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: its lock file was removed", driver.ErrLost)
	}
	return err
}

// Close ends the claims of this Store, except claims renewed with Leave, and waits for the
// goroutines of the Store. Calls under way complete; later calls fail.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.watcher.close()
	s.closeIdle()
	s.endSession()
	s.background.Wait()
	return nil
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
