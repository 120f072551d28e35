package filelock

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// Holders returns the claims on a key, as driver.Inspector describes. It changes nothing
// and waits for nobody.
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	st, at, err := s.peek(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st.strike(s.alive)
	list := st.Holders(at.Now)
	for i := range list {
		if list[i].Left > forever/2 {
			list[i].Left = 0
		}
	}
	return list, nil
}

// Keys yields the keys with live claims, as driver.Inspector describes. An unreadable file
// does not hide the other files: the errors come last, as one.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.ready(ctx); err != nil {
			yield("", err)
			return
		}
		var errs []error
		for name, err := range s.lockFiles(prefix) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				errs = append(errs, err)
				break
			}
			st, at, err := s.peekFile(filepath.Join(s.dir, name), name)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if st.key != "" && fileName(st.key) != name {
				errs = append(errs, of(filepath.Join(s.dir, name), errOtherKey))
				continue
			}
			st.strike(s.alive)
			if st.Live(at.Now) && strings.HasPrefix(st.key, prefix) && !yield(st.key, nil) {
				return
			}
		}
		if err := errors.Join(errs...); err != nil {
			yield("", err)
		}
	}
}

// lockFiles yields the names of the files that may belong to keys with a prefix.
func (s *Store) lockFiles(prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir, err := os.Open(s.dir)
		if err != nil {
			yield("", err)
			return
		}
		defer dir.Close()
		for {
			names, err := dir.Readdirnames(256)
			for _, name := range names {
				if mayName(name, prefix) && !yield(name, nil) {
					return
				}
			}
			if err != nil {
				if err != io.EOF {
					yield("", err)
				}
				return
			}
		}
	}
}

// Break ends a claim, as driver.Inspector describes.
func (s *Store) Break(ctx context.Context, key, id string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	sec, err := s.enter(ctx, key, false)
	if err != nil {
		return lostIfGone(err)
	}
	broken, lost := sec.Break(sec.here.Moment, id)
	sec.note()
	sec.notify = lost == nil
	if err := sec.leave(ctx); err != nil || lost != nil {
		return errors.Join(err, lost)
	}
	if broken.Session != "" {
		s.sendSignal(broken.Session)
	}
	return nil
}

// sendSignal makes the Store with this session check its claims.
func (s *Store) sendSignal(session string) {
	if s.isOwn(session) {
		s.watcher.checkHeld()
		return
	}
	h, err := safefile.Open(s.sessionPath(session), true)
	if err != nil {
		return // The Store learns of the break at the next renewal.
	}
	defer h.Close() // The close is the event, where there are events; the text is for polling.
	_ = writeAt(h, []byte(rand.Text()[:signalSize]), 0)
}

// peek reads the state of a key without its lock. A record under write counts as not yet
// written.
func (s *Store) peek(key string) (state, anchor, error) {
	path := filepath.Join(s.dir, fileName(key))
	st, at, err := s.peekFile(path, key)
	if err == nil && st.key != key && st.key != "" {
		err = of(path, errOtherKey)
	}
	return st, at, err
}

// peekFile is peek by path. key is for an error alone.
func (s *Store) peekFile(path, key string) (st state, at anchor, err error) {
	h, err := safefile.Open(path, false)
	if err != nil {
		return st, at, err
	}
	defer h.Close()
	if _, err := h.Inspect(path, s.opts.Mode != private); err != nil {
		return st, at, advise(err)
	}
	for range 3 { // Two writes during one read could spoil both slots.
		var page [pageSize]byte
		var from slot
		at = s.here()
		if from, _, err = readRecord(h, key, &page); err == nil {
			if from.seq > 0 {
				err = st.decode(from.text, from.written, at)
			}
		}
		if err == nil {
			return st, at, nil
		}
	}
	return state{}, at, of(path, err)
}
