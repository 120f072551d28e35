package verify

import (
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
)

// slack is the time that every step may take on a busy machine, besides the time of the
// protocol.
const slack = 10 * time.Second

// grace is how long a waiter may wait for a free key without an excuse, while processes run
// and other waiters acquire locks.
const grace = 4 * time.Second

// inLine is how long a place in the queue stands without news of the waiter. A lock that is
// granted to the place at the end of inLine stands for the same time again.
const inLine = 3 * time.Second

// manners describes the store as docs/guarantees.md does: how long the key of a dead holder
// stays locked, and whether the store has a queue.
func (s *scene) manners() check.Store {
	t, ttl := s.target, s.TTL
	m := check.Store{Held: ttl, Place: 2 * min(ttl, inLine), Line: true}
	switch t.url.Scheme {
	case "redlock":
		m.Line = false // nodes may admit different waiters
	case "memcached":
		m.Held, m.Line = ttl+4*time.Second, false
	case "etcd", "etcds":
		m.Held = ttl + max(ttl/3, time.Second) + 500*time.Millisecond
		m.Place = 4500 * time.Millisecond
	case "nats", "natss", "s3", "gs", "dynamodb", "azblob":
		m.Held = 2*ttl + ttl/64 + 500*time.Millisecond // for a waiter that comes when the holder dies
		m.Place, m.Seen = s.crowd(), true
	case "zk":
		m.Held = max(3*ttl, 4*time.Second) // two ticks of a server with default settings
	}
	if t.sessions() {
		m.Held, m.Line = ttl+2*time.Second, false
	}
	m.Place = max(m.Place, m.Held) // a lock may have been granted without its owner's knowledge
	return m
}

// crowd returns how long dead waiters may block a key in a store of package caslock. A process
// has one claim in the queue of a key. Ahead of the last dead waiter are at most the claims of
// all workers, and of as many dead workers. For every four claims ahead, a place lasts for a TTL
// more, up to eight TTLs. A waiter may first see the last request of the dead waiter when a third of
// this time has passed, and allows for clocks of different rates. If a dead waiter is granted
// the key at the end of its place, the grant stands for inLine.
func (s *scene) crowd() time.Duration {
	last := min(s.TTL+s.TTL/4*time.Duration(2*s.Workers), 8*s.TTL)
	return last + last/3 + last/64 + min(s.TTL, inLine) + 500*time.Millisecond
}

// respite is how long the servers must be left alone for progress to have something to
// judge. It lasts until the after-effects of a fault are no excuse any more, and then for
// longer than a waiter may wait without an excuse.
func (s *scene) respite() time.Duration { return s.manners().Place + grace + time.Second }

// lapse is how long a store may keep remains, at most. ZooKeeper keeps remains for up to
// three TTLs, and every store keeps a place in the queue for three seconds more, or longer.
func (s *scene) lapse() time.Duration { return max(3*s.TTL+4*time.Second, s.manners().Place) }
