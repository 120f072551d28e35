package verify

import (
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
)

// slack is what everything may take on a busy machine, besides what the protocol
// says.
const slack = 10 * time.Second

// grace is how long somebody may wait for a free key without an excuse, while
// processes run and others get their locks.
const grace = 4 * time.Second

// inLine is how long a place in line stands of whose owner nothing is heard. A lock
// that comes to it at the end of that stands for as long again.
const inLine = 3 * time.Second

// manners are those of the store, as docs/guarantees.md has them: how long it takes
// until the key of a holder that has died is free, and whether there is a line.
func (t *target) manners(ttl time.Duration) check.Store {
	s := check.Store{Held: ttl, Place: 2 * min(ttl, inLine), Line: true}
	switch t.url.Scheme {
	case "redlock":
		s.Line = false // some nodes may let in one, and some another
	case "memcached":
		s.Held, s.Line = ttl+4*time.Second, false
	case "etcd", "etcds":
		s.Held = ttl + max(ttl/3, time.Second) + 500*time.Millisecond
		s.Place = 4500 * time.Millisecond
	case "zk":
		s.Held = max(3*ttl, 4*time.Second) // two ticks of a server as it comes
	}
	if t.sessions() {
		s.Held, s.Line = ttl+2*time.Second, false
	}
	s.Place = max(s.Place, s.Held) // a lock may have been granted without its owner's knowledge
	return s
}

// respite is how long servers have to be left alone for progress to have something to
// judge: until nothing that a fault has left is an excuse any more, and then for longer
// than somebody may wait without one.
func (t *target) respite(ttl time.Duration) time.Duration {
	return t.manners(ttl).Place + grace + time.Second
}

// lapse is how long a store may keep what has been left, at most. ZooKeeper does so
// for up to three TTLs, and every store lets a place in line stand for three seconds
// more.
func lapse(ttl time.Duration) time.Duration { return 3*ttl + 4*time.Second }
