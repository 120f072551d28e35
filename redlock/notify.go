package redlock

import (
	"errors"
	"maps"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// remembered is how long a loss reported by a single node waits for confirmation by more
// nodes.
const remembered = time.Minute

// A loss is a lost claim reported by some nodes.
type loss struct {
	nodes map[*node]struct{}
	why   error
	since time.Time
}

// Notify implements [driver.Notifier]. A claim is lost when the nodes that have not
// reported the loss are no majority.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	return s.notices.Notify(lost)
}

// reported receives the report of a loss from one node.
func (s *Store) reported(n *node, key, id string, err error) {
	if why := s.lost(n, id, err); why != nil {
		s.notices.Tell(key, id, why)
	}
}

// lost returns the reason of a loss only once, when the nodes that have not reported the
// loss are no majority any more; before and after, nil.
func (s *Store) lost(n *node, id string, err error) (why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.losses[id]
	if l == nil {
		s.expireLocked()
		l = &loss{nodes: make(map[*node]struct{}), since: time.Now()}
		s.losses[id] = l
	}
	before := len(l.nodes)
	l.nodes[n] = struct{}{}
	if l.why == nil || errors.Is(err, driver.ErrBroken) {
		l.why = err
	}
	if blocks(before, len(s.nodes)) || !blocks(len(l.nodes), len(s.nodes)) {
		return nil
	}
	return l.why
}

// expireLocked deletes old losses.
func (s *Store) expireLocked() {
	maps.DeleteFunc(s.losses, func(_ string, l *loss) bool { return time.Since(l.since) > remembered })
}
