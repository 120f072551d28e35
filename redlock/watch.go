package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// settling is how long a watch waits for more nodes once one has granted the claim: the
// release that made room reaches the nodes one after the other.
const settling = 5 * time.Millisecond

var errNoWatch = errors.New("cannot push")

// A watch wakes a queued claim when a majority of the nodes has granted it. The watch
// never pushes a grant: only an Acquire gives the nodes' tokens one order.
type watch struct {
	redlock *Store
	id      string
	call    func(driver.Grant)

	mu      sync.Mutex
	stopped bool
	open    bool     // Watch has returned
	has     []bool   // by node: it holds the claim
	stops   []func() // by node
	timer   *time.Timer
}

// Watch implements [driver.Watcher]. It fails if too few nodes can push.
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	w := &watch{redlock: s, id: c.ID, call: wake, has: make([]bool, len(s.nodes))}
	s.mu.Lock()
	s.watches[c.ID] = append(s.watches[c.ID], w)
	s.mu.Unlock()
	_, err = gather(ctx, s, nodeLimit, func(ctx context.Context, n *node) (any, error) {
		return nil, n.call(ctx, func(inner driver.Store) error {
			watcher, ok := inner.(driver.Watcher)
			if !ok {
				return errNoWatch
			}
			stop, err := watcher.Watch(ctx, c, func(g driver.Grant) { w.notified(n, g) })
			if err == nil {
				w.addStop(stop)
			}
			return err
		})
	})
	if err != nil {
		w.stop()
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = true
	return w.stop, nil
}

// addStop stores the function that ends the watch at one node. If the function has come
// late, the claim asks once more, because a wake may have been missed.
func (w *watch) addStop(stop func()) {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		stop()
		return
	}
	defer w.mu.Unlock()
	w.stops = append(w.stops, stop)
	if w.open {
		w.wakeSoonLocked()
	}
}

// notified receives the wake-up of a node.
func (w *watch) notified(n *node, g driver.Grant) {
	if !g.OK {
		w.wake(driver.Grant{})
		return
	}
	w.mu.Lock()
	w.has[n.index] = true
	enough := w.nodesLocked() >= w.redlock.majority()
	if !enough {
		w.wakeSoonLocked()
	}
	w.mu.Unlock()
	if enough {
		w.wake(driver.Grant{})
	}
}

// nodesLocked counts the nodes that hold the claim.
func (w *watch) nodesLocked() (n int) {
	for _, has := range w.has {
		if has {
			n++
		}
	}
	return n
}

func (w *watch) wake(g driver.Grant) {
	w.mu.Lock()
	stopped := w.stopped
	w.stopTimerLocked()
	w.mu.Unlock()
	if !stopped {
		w.call(g)
	}
}

// stopTimerLocked ends the wait for more nodes.
func (w *watch) stopTimerLocked() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	stops := w.stops
	w.stopped, w.stops = true, nil
	w.stopTimerLocked()
	w.mu.Unlock()
	w.redlock.forget(w)
	for _, stop := range stops {
		stop()
	}
}

func (s *Store) forget(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[w.id] = slices.DeleteFunc(s.watches[w.id], func(other *watch) bool { return other == w })
	if len(s.watches[w.id]) == 0 {
		delete(s.watches, w.id)
	}
}

// report tells the watches of a claim which nodes hold the claim after a bid. If the
// contest of the claim has not ended, the claim asks again soon.
func (s *Store) report(b *bid) {
	s.mu.Lock()
	watches := slices.Clone(s.watches[b.ask.ID])
	s.mu.Unlock()
	for _, w := range watches {
		w.mu.Lock()
		for i := range b.votes {
			if k := b.votes[i].kind; k == granted || k == refused {
				w.has[i] = k == granted
			}
		}
		if b.open {
			w.wakeSoonLocked()
		}
		w.mu.Unlock()
	}
}

// wakeSoonLocked wakes the claim after a while.
func (w *watch) wakeSoonLocked() {
	if w.timer == nil && !w.stopped {
		w.timer = time.AfterFunc(settling, func() { w.wake(driver.Grant{}) })
	}
}

// grantedLate takes a node's answer to a queued claim that came after the bid. A yes counts as if
// the node had pushed the grant.
func (b *bid) grantedLate(n *node, v vote) {
	if v.kind != granted {
		return
	}
	b.mu.Lock()
	watches := slices.Clone(b.watches[b.ask.ID])
	b.mu.Unlock()
	for _, w := range watches {
		w.notified(n, v.grant)
	}
}
