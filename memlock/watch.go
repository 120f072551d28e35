package memlock

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch waits until a claim is granted or worth a retry.
type watch struct {
	store *Store
	id    string
	wake  func(driver.Grant)
}

// A call is a wake-up to be made without the mutex, because the callback is foreign code.
type call struct {
	wake  func(driver.Grant)
	grant driver.Grant
}

func ring(calls []call) {
	for i := range calls {
		calls[i].wake(calls[i].grant)
	}
}

// Watch implements [driver.Watcher]. The context is ignored; the watch lasts until stop or
// Close.
func (s *Store) Watch(_ context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	p := s.space.of(c.Key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.closed.Load() {
		return nil, errClosed
	}
	w := &watch{store: s, id: c.ID, wake: wake}
	sh := p.take(p.momentLocked(), c.Key)
	sh.watches = append(sh.watches, w)
	return func() { p.unwatch(c.Key, w) }, nil
}

func (p *part) unwatch(key string, w *watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sh := p.shelves[key]
	if sh == nil {
		return
	}
	if i := slices.Index(sh.watches, w); i >= 0 {
		sh.watches = slices.Delete(sh.watches, i, i+1)
		p.tidy(sh)
	}
}

// wake adds to calls the watches of claims granted by the last call. If there is room and
// the queue is empty, wake also adds the watches of claims without a place in the queue.
func (sh *shelf) wake(room bool, calls []call) []call {
	for _, p := range sh.Pushed {
		// The head of the queue has mostly begun to watch first.
		i := slices.IndexFunc(sh.watches, func(w *watch) bool { return w.id == p.ID })
		if i >= 0 {
			calls = append(calls, call{sh.watches[i].wake, p.Grant})
		}
	}
	if room && len(sh.Queue) == 0 {
		for _, w := range sh.watches {
			if !sh.holds(w.id) {
				calls = append(calls, call{w.wake, driver.Grant{}})
			}
		}
	}
	return calls
}

func (sh *shelf) holds(id string) bool {
	for i := range sh.Held {
		if sh.Held[i].ID == id {
			return true
		}
	}
	return false
}

// Notify implements [driver.Notifier]. The store reports one kind of loss: a claim ended
// by Break.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	return s.losses.Notify(lost)
}
