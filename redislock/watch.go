package redislock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// listening prepares an Acquire for messages about its claim: of a loss, if anyone called
// Notify, and of a grant, if the claim waits. The result tells a script how to reach this
// Store.
func (s *Store) listening(ctx context.Context, a driver.Ask) (push string) {
	s.mu.Lock()
	sub := s.subscriptions[s.channel]
	settled := sub != nil && sub.settledLocked()
	s.mu.Unlock()
	if !settled && s.losses.Any() {
		// If the subscription fails, the owner learns of a loss at the next renewal.
		limit := firstTry
		if end, ok := ctx.Deadline(); ok { // The call of a claim with a short TTL needs the rest.
			limit = min(limit, time.Until(end)/4)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		_, _ = s.subscribe(ctx, s.channel)
		cancel()
	}
	if !a.Wait {
		return ""
	}
	return s.grantAddress(a.Key)
}

// Watch implements [driver.Watcher].
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	sub, err := s.subscribe(ctx, s.grantChannel(c.Key))
	if err != nil {
		return nil, err
	}
	return sub.wakes.Add(c.ID, wake), nil
}

// Notify implements [driver.Notifier]. This store reports one kind of loss: a claim that
// Break has ended.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	return s.losses.Notify(lost)
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
