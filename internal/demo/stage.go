package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/fileurl"
)

// limit ends a sale that hangs. The default sale takes a few seconds.
const limit = 3 * time.Minute

// Run plays the sale, and the scene if c.Pause is set. An error says why the sale could
// not be played. [Report.Err] says whether Holdfast did its job. When ctx ends, Run stops
// the servers and returns the cause of ctx.
func Run(ctx context.Context, c Config) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	report, err := c.play(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // every other error follows from the cause
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

// A stage is what all rounds share.
type stage struct {
	Config
	folder    string // removed at the end
	shop      *shop
	warehouse *site  // where servers reach the shop
	store     string // URL of the lock store
	prefix    string // of the keys: keeps two sales in one store apart
}

// build makes the folder of the sale, checks that the store answers, and opens the shop.
func (c Config) build(ctx context.Context) (_ *stage, err error) {
	folder, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return nil, err
	}
	s := &stage{
		Config: c,
		folder: folder,
		shop:   newShop(),
		store:  c.Store,
		prefix: "holdfast-demo/" + rand.Text() + "/",
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.clear())
		}
	}()
	if s.store == "" {
		s.store = fileurl.Of("file", filepath.Join(folder, "locks"))
	}
	if err := s.tryStore(ctx); err != nil {
		return nil, err
	}
	s.warehouse, err = openSite(warehouse(s.shop))
	return s, err
}

// ErrStore says that the sale cannot be held with this lock store.
var ErrStore = errors.New("the lock store cannot serve")

// tryStore acquires a lock first, so that a store that does not answer is reported once
// and at once.
func (s *stage) tryStore(ctx context.Context) error {
	if u, err := url.Parse(s.store); err == nil && u.Scheme == "mem" {
		return fmt.Errorf("%w: %w: mem:// is the memory of one process, which servers do not share", ErrStore, driver.ErrURL)
	}
	locks, err := holdfast.Open(ctx, s.store, &holdfast.Options{Logger: slog.New(slog.DiscardHandler)})
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

// clear removes the files of the sale from the disk.
func (s *stage) clear() error {
	if s.warehouse != nil {
		s.warehouse.close()
	}
	return os.RemoveAll(s.folder)
}

// offer puts a fresh item on sale, and returns the job of the servers.
func (s *stage) offer(item string, stock int, bank *site) job {
	s.shop.offer(item, stock)
	return job{Warehouse: s.warehouse.url, Bank: bank.url, Item: item, Store: s.store, Key: s.prefix + item}
}
