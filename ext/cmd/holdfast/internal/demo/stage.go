package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// limit ends a sale that hangs. The default one takes a few seconds.
const limit = 3 * time.Minute

// Run plays the sale, and the scene if it is asked for. An error says why it
// could not be played; whether it went as it should is for [Report.Err]. When
// ctx ends, the servers are stopped and Run returns its cause.
func Run(ctx context.Context, c Config) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	report, err := c.play(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // all else follows from it
	}
	return report, err
}

func (c Config) play(ctx context.Context) (r *Report, err error) {
	s, err := c.build(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.clear()) }()
	r = s.report()
	for _, g := range []Guard{NoLock, Mutex, Holdfast} {
		round, err := s.round(ctx, g)
		if err != nil {
			return nil, fmt.Errorf("round %q: %w", g, err)
		}
		r.Rounds = append(r.Rounds, round)
	}
	if c.Pause {
		for _, fenced := range []bool{false, true} {
			scene, err := s.scene(ctx, fenced)
			if err != nil {
				return nil, fmt.Errorf("the scene with the pause: %w", err)
			}
			r.Scenes = append(r.Scenes, scene)
		}
	}
	return r, nil
}

// A stage is what all rounds have in common.
type stage struct {
	Config
	folder string // removed at the end
	path   string // of the shop's database
	shop   *shop
	store  string // URL of the lock store
	prefix string // of the keys, so that two sales in one store do not meet
}

// build makes the folder of the sale and the shop in it, and sees to it that
// the store answers.
func (c Config) build(ctx context.Context) (_ *stage, err error) {
	folder, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return nil, err
	}
	s := &stage{
		Config: c,
		folder: folder,
		path:   filepath.Join(folder, "shop.db"),
		store:  c.Store,
		prefix: "holdfast-demo/" + rand.Text() + "/",
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.clear())
		}
	}()
	if s.store == "" {
		s.store = fileURL(filepath.Join(folder, "locks"))
	}
	if err := s.tryStore(ctx); err != nil {
		return nil, err
	}
	if s.shop, err = openShop(s.path); err != nil {
		return nil, err
	}
	return s, s.shop.create(ctx)
}

// fileURL is the URL of file locks in a folder. On Windows a path begins with
// a letter, and a URL path with a slash.
func fileURL(folder string) string {
	path := filepath.ToSlash(folder)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// ErrStore says that the sale cannot be held with this lock store.
var ErrStore = errors.New("the lock store cannot serve")

// tryStore takes a lock, so that a store that does not answer is told of once,
// and at once.
func (s *stage) tryStore(ctx context.Context) error {
	if u, err := url.Parse(s.store); err == nil && u.Scheme == "mem" {
		return fmt.Errorf("%w: %w: mem:// is the memory of one process, which servers do not share", ErrStore, driver.ErrURL)
	}
	locks, err := holdfast.Open(ctx, s.store, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	lock, err := locks.TryLock(ctx, s.prefix+"try", holdfast.Fenced())
	if err == nil {
		err = lock.Unlock()
	}
	if err = errors.Join(err, locks.Close()); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// clear removes what the sale has left on disk.
func (s *stage) clear() error {
	var err error
	if s.shop != nil {
		err = s.shop.close()
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

// offer puts a fresh item on sale, and returns what its servers have to know.
func (s *stage) offer(ctx context.Context, item string, stock int, bank *site) (job, error) {
	j := job{Shop: s.path, Bank: bank.url, Item: item, Store: s.store, Key: s.prefix + item}
	return j, s.shop.offer(ctx, item, stock)
}
