package redlock

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// remembered is how long a loss reported by a single node waits for confirmation by more
// nodes.
const remembered = time.Minute

// A notice receives losses.
type notice struct {
	lost func(key, id string, err error)
}

// A loss is a lost claim reported by some nodes.
type loss struct {
	nodes map[*node]struct{}
	why   error
	since time.Time
}

// Notify implements [driver.Notifier]. A claim is lost when the nodes that have not
// reported the loss are no majority.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	n := &notice{lost}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices[n] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.notices, n)
	}
}

// told receives the report of a loss from one node.
func (s *Store) told(n *node, key, id string, err error) {
	tell, err := s.lost(n, id, err)
	for _, notice := range tell {
		notice.lost(key, id, err)
	}
}

// lost returns the notices to call, and the reason of the loss. lost returns notices only
// once, when the nodes that have not reported the loss are no majority any more.
func (s *Store) lost(n *node, id string, err error) (tell []*notice, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.losses[id]
	if l == nil {
		s.expire()
		l = &loss{nodes: make(map[*node]struct{}), since: time.Now()}
		s.losses[id] = l
	}
	before := len(l.nodes)
	l.nodes[n] = struct{}{}
	if l.why == nil || errors.Is(err, driver.ErrBroken) {
		l.why = err
	}
	if blocks(before, len(s.nodes)) || !blocks(len(l.nodes), len(s.nodes)) {
		return nil, nil
	}
	return slices.Collect(maps.Keys(s.notices)), l.why
}

// expire deletes old losses. The caller holds mu.
func (s *Store) expire() {
	maps.DeleteFunc(s.losses, func(_ string, l *loss) bool { return time.Since(l.since) > remembered })
}
