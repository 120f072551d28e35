package etcdlock

import (
	"context"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// noticeLimit is how long an Acquire may wait for the watch on the notices. If the watch
// takes longer to begin, the owner may learn of a break only at its next renewal.
const noticeLimit = 250 * time.Millisecond

// Notify implements [driver.Notifier]. The store notifies of claims whose lease has
// ended, and of claims ended by Break.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	stop = s.losses.Notify(lost)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notices == nil && !s.closed {
		ready := make(chan struct{})
		s.notices = ready
		s.running.Go(func() { s.readNotices(ready) })
	}
	return stop
}

// awaitNotices waits until the watch on the notices has begun, if Notify was called.
func (s *Store) awaitNotices(ctx context.Context) {
	s.mu.Lock()
	ready := s.notices
	s.mu.Unlock()
	if ready == nil {
		return
	}
	select {
	case <-ready:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, noticeLimit)
	defer cancel()
	select {
	case <-ready:
	case <-ctx.Done():
	}
}

// readNotices watches the folder where this Store is notified of its broken claims. A
// single watch is enough for all claims.
func (s *Store) readNotices(ready chan struct{}) {
	open := sync.OnceFunc(func() { close(ready) })
	s.watch(s.ctx, s.names.notices(s.id), []clientv3.OpOption{clientv3.WithPrefix()}, func(int64) { open() }, func(events []*clientv3.Event) {
		for _, e := range events {
			if e.Type == clientv3.EventTypePut {
				s.broken(strings.TrimPrefix(string(e.Kv.Key), s.names.notices(s.id)))
			}
		}
	})
}

// broken ends a claim that an operator has broken.
func (s *Store) broken(publicID string) {
	s.mu.Lock()
	var c *claim
	for id := range s.table {
		if driver.PublicID(id) == publicID {
			c = s.table[id]
		}
	}
	if c == nil || c.over() {
		s.mu.Unlock()
		return
	}
	key, id := c.key, c.ID
	s.addLeftoverLocked(c)
	s.mu.Unlock()
	s.losses.Tell(key, id, driver.ErrBroken)
}
