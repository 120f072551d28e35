package etcdlock

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// A notice waits for claims of its Store to end by themselves.
type notice struct {
	lost func(key, id string, err error)
}

// A mailbox is where this Store is told which of its claims were broken. One
// watch of a folder of its own is enough for all of them.
type mailbox struct{ ready chan struct{} }

// mailLimit is how long a claim may wait for the mailbox. If it takes longer, its
// owner may learn of a break only when it renews.
const mailLimit = 250 * time.Millisecond

// Notify implements [driver.Notifier]. This store learns by itself of claims
// whose lease has ended, and of those that Break has.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	n := &notice{lost}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.notices[n] = true
		if s.mail == nil {
			s.mail = &mailbox{make(chan struct{})}
			s.running.Go(func() { s.collect(s.mail) })
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.notices, n)
	}
}

// listen waits until the mailbox is open, if anybody wants to know.
func (s *Store) listen(ctx context.Context) {
	s.mu.Lock()
	mail := s.mail
	s.mu.Unlock()
	if mail == nil {
		return
	}
	select {
	case <-mail.ready:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, mailLimit)
	defer cancel()
	select {
	case <-mail.ready:
	case <-ctx.Done():
	}
}

// collect takes what comes in the mail.
func (s *Store) collect(m *mailbox) {
	open := false
	s.watch(s.ctx, s.names.post(s.id), nil, func(int64) {
		if !open {
			open = true
			close(m.ready)
		}
	}, func(events []*clientv3.Event) {
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
	s.tell(key, id, driver.ErrBroken)
}

// tell tells whoever wants to know that a claim has ended.
func (s *Store) tell(key, id string, err error) {
	s.mu.Lock()
	var told []*notice
	for n := range s.notices {
		told = append(told, n)
	}
	s.mu.Unlock()
	for _, n := range told {
		n.lost(key, id, err)
	}
}
