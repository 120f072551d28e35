package filelock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/callbacks"
	"github.com/holdfast-go/holdfast/internal/dirwatch"
)

// A watcher notifies the waiting claims of a Store of grants, and the held claims of
// losses. The watcher receives events of the directory, or polls if there are no events.
//
// There are two kinds of events. A process that has granted a queued claim closes the lock
// file, and a process that ends closes its session. Ordinary calls cause no event, and cost
// the watchers nothing.
type watcher struct {
	store  *Store
	losses callbacks.Losses

	mu      sync.Mutex
	watched map[string]*watched // by file name
	waiting int                 // waiting claims
	held    int                 // held claims under watch
	started bool
	closed  bool
	delayed *time.Timer     // starts the watcher for held claims; nil: not scheduled
	events  *dirwatch.Watch // nil: poll
	pollNow chan struct{}   // poll soon
	quit    chan struct{}
	stopped sync.WaitGroup
}

// A watched is what a watcher knows of one key.
type watched struct {
	key   string
	waits []*wait
	held  []string // ids of claims
}

type wait struct {
	id   string
	wake func(driver.Grant)
}

func (w *watcher) init(s *Store) {
	w.store = s
	w.watched = make(map[string]*watched)
	w.pollNow = make(chan struct{}, 1)
	w.quit = make(chan struct{})
}

// Watch wakes a waiting claim, as driver.Watcher describes.
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	if err := checkKey(c.Key); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	w, name := &s.watcher, fileName(c.Key)
	one := &wait{id: c.ID, wake: wake}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}
	w.startLocked()
	at := w.at(name, c.Key)
	at.waits = append(at.waits, one)
	w.waiting++
	w.pollSoon()
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		at.waits = without(at.waits, one)
		w.waiting--
		w.tidy(name, at)
	}), nil
}

// Notify reports ended claims of this Store, as driver.Notifier describes. On Linux,
// Notify reports the end of a claim at once, though perhaps not before the claim is half
// a second old. Elsewhere, and on network file systems, Notify reports within 250 ms that
// a claim was broken, but not that a lock file was removed: the next renewal reports the
// removal.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	return s.watcher.losses.Notify(lost)
}

// watchDelay is how long claims are held before the watcher checks them. Most claims end sooner,
// and to stop watching takes Linux ten milliseconds.
const watchDelay = 500 * time.Millisecond

// track begins to watch a held claim.
func (w *watcher) track(name, key, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.losses.Any() || w.closed {
		return
	}
	if !w.started && w.delayed == nil {
		w.delayed = time.AfterFunc(watchDelay, w.startDelayed)
	}
	if at := w.at(name, key); !slices.Contains(at.held, id) {
		at.held = append(at.held, id)
		if w.held++; w.held == 1 && w.events == nil {
			w.pollSoon()
		}
	}
}

// untrack stops watching a claim and reports whether the claim was watched.
func (w *watcher) untrack(name, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.watched[name]
	if at == nil || !slices.Contains(at.held, id) {
		return false
	}
	at.held = without(at.held, id)
	w.held--
	w.tidy(name, at)
	return true
}

func without[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func (w *watcher) at(name, key string) *watched {
	at := w.watched[name]
	if at == nil {
		at = &watched{key: key}
		w.watched[name] = at
	}
	return at
}

// tidy deletes a key without claims. A few stay, for keys that come and go all the time.
func (w *watcher) tidy(name string, at *watched) {
	if len(at.waits)+len(at.held) == 0 && len(w.watched) > w.store.maxOpen {
		delete(w.watched, name)
	}
}
