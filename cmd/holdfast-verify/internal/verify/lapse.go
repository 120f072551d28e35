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
func (t *target) manners(ttl time.Duration) check.Store {
	s := check.Store{Held: ttl, Place: 2 * min(ttl, inLine), Line: true}
	switch t.url.Scheme {
	case "redlock":
		s.Line = false // nodes may admit different waiters
	case "memcached":
		s.Held, s.Line = ttl+4*time.Second, false
	case "etcd", "etcds":
		s.Held = ttl + max(ttl/3, time.Second) + 500*time.Millisecond
		s.Place = 4500 * time.Millisecond
	case "nats", "natss", "s3":
		s.Held = 2*ttl + ttl/64 + 500*time.Millisecond // for a waiter that comes when the holder dies
	case "zk":
		s.Held = max(3*ttl, 4*time.Second) // two ticks of a server with default settings
	}
	if t.sessions() {
		s.Held, s.Line = ttl+2*time.Second, false
	}
	s.Place = max(s.Place, s.Held) // a lock may have been granted without its owner's knowledge
	return s
}

// respite is how long the servers must be left alone for progress to have something to
// judge. It lasts until the after-effects of a fault are no excuse any more, and then for
// longer than a waiter may wait without an excuse.
func (t *target) respite(ttl time.Duration) time.Duration {
	return t.manners(ttl).Place + grace + time.Second
}

// lapse is how long a store may keep remains, at most. ZooKeeper keeps remains for up to
// three TTLs, and every store keeps a place in the queue for three seconds more.
func lapse(ttl time.Duration) time.Duration { return 3*ttl + 4*time.Second }
