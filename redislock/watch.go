package redislock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch waits until a claim is granted, or a retry may succeed.
type watch struct {
	channel Channel
	wake    func(driver.Grant)
}

// A notice waits until claims of the Store are broken.
type notice struct {
	lost func(key, id string, err error)
}

// listening prepares an Acquire for messages about its claim: of a loss, if anyone called
// Notify, and of a grant, if the claim waits. The result tells a script how to reach this
// Store.
func (s *Store) listening(ctx context.Context, c driver.Claim) (push string) {
	s.mu.Lock()
	e := s.ears[s.losses]
	listens := len(s.notices) == 0 || e != nil && e.settled()
	s.mu.Unlock()
	if !listens {
		// If the subscription fails, the owner learns of a loss at the next renewal.
		ctx, cancel := context.WithTimeout(ctx, firstTry)
		_ = s.listen(ctx, s.losses)
		cancel()
	}
	if !c.Wait {
		return ""
	}
	return s.pushed(c.Key)
}

// Watch implements [driver.Watcher].
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	w := &watch{channel: s.grantChannel(c.Key), wake: wake}
	if err := s.listen(ctx, w.channel); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.watches[c.ID] == nil {
		s.watches[c.ID] = make(map[*watch]struct{}, 1)
	}
	s.watches[c.ID][w] = struct{}{}
	return func() { s.unwatch(c.ID, w) }, nil
}

func (s *Store) unwatch(id string, w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches[id], w)
	if len(s.watches[id]) == 0 {
		delete(s.watches, id)
	}
}

// wake notifies the watches of a claim.
func (s *Store) wake(id string, g driver.Grant) {
	s.mu.Lock()
	var wakes []func(driver.Grant)
	for w := range s.watches[id] {
		wakes = append(wakes, w.wake)
	}
	s.mu.Unlock()
	for _, wake := range wakes {
		wake(g)
	}
}

// Notify implements [driver.Notifier]. This store reports one kind of loss: a claim that
// Break has ended.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	n := &notice{lost}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.notices[n] = struct{}{}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.notices, n)
	}
}

// Close ends the watches of this Store and makes later calls fail. A Store that was
// opened by URL also closes all its connections; a client that was given to [New] stays
// open. Claims stay until they expire. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.cancel()
	s.running.Wait()
	s.conn.Close()
	return nil
}
