package etcdlock

import (
	"context"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// mailLimit is how long an Acquire may wait for the mailbox. If the mailbox takes
// longer, the owner may learn of a break only at its next renewal.
const mailLimit = 250 * time.Millisecond

// Notify implements [driver.Notifier]. The store notifies of claims whose lease has
// ended, and of claims ended by Break.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	stop = s.losses.Notify(lost)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mail == nil && !s.closed {
		ready := make(chan struct{})
		s.mail = ready
		s.running.Go(func() { s.collect(ready) })
	}
	return stop
}

// listen waits until the mailbox is open, if Notify was called.
func (s *Store) listen(ctx context.Context) {
	s.mu.Lock()
	mail := s.mail
	s.mu.Unlock()
	if mail == nil {
		return
	}
	select {
	case <-mail:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, mailLimit)
	defer cancel()
	select {
	case <-mail:
	case <-ctx.Done():
	}
}

// collect handles the notifications in the mailbox, the folder where this Store is
// notified of its broken claims. A single watch is enough for all claims.
func (s *Store) collect(ready chan struct{}) {
	open := sync.OnceFunc(func() { close(ready) })
	s.watch(s.ctx, s.names.post(s.id), nil, func(int64) { open() }, func(events []*clientv3.Event) {
		for _, e := range events {
			if e.Type == clientv3.EventTypePut {
				s.broken(strings.TrimPrefix(string(e.Kv.Key), s.names.post(s.id)))
			}
		}
	})
}

// broken ends a claim that an operator has broken.
func (s *Store) broken(letter string) {
	s.mu.Lock()
	var c *claim
	for id := range s.table {
		if driver.PublicID(id) == letter {
			c = s.table[id]
		}
	}
	if c == nil || c.state == ending {
		s.mu.Unlock()
		return
	}
	key, id := c.Key, c.ID
	s.condemn(c)
	s.mu.Unlock()
	s.losses.Tell(key, id, driver.ErrBroken)
}
