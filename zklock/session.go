package zklock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// A session is shared by the claims of a class. The map is guarded by Store.mu.
type session struct {
	store   *Store
	zoo     *zoo.Session
	class   time.Duration
	over    error
	watched map[string]map[*claim]bool // by path
}

// An opening is an attempt to open a session, shared by all callers that wait for it.
type opening struct {
	done    chan struct{}
	session *session
	err     error
}

// openLimit bounds an attempt to open a session. The limit is independent of a single
// call: after the first caller has given up, the attempt continues for the next.
const openLimit = 10 * time.Second

// class returns the TTL for which a session is made: the TTL rounded up to one, one and
// a half, two, three, four, six, eight ... seconds. TTLs longer than the largest class,
// about a quarter of an hour, are granted for that class at a time.
func class(ttl time.Duration) time.Duration {
	c := time.Second
	for ; c < 1<<10*time.Second; c *= 2 {
		if ttl <= c {
			return c
		}
		if ttl <= c*3/2 {
			return c * 3 / 2
		}
	}
	return c
}

// cover is how long a claim can stand, counted from a moment at which the session has its
// usual time left.
func (k *session) cover() time.Duration { return k.zoo.Timeout() / 2 }

// session returns the session for claims of this TTL, and opens it if there is none.
func (s *Store) session(ctx context.Context, ttl time.Duration) (*session, error) {
	c := class(ttl)
	s.mu.Lock()
	k, o := s.sessions[c], s.openings[c]
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, errClosed
	case k != nil:
		s.mu.Unlock()
		return k, nil
	case o == nil:
		o = &opening{done: make(chan struct{})}
		s.openings[c] = o
		s.background.Go(func() { s.open(o, c) })
	}
	s.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no session with %s: %w", strings.Join(s.config.Servers, ","), ctx.Err())
	}
}

// open opens a session. The servers end a session after two TTLs of silence. At any
// time, the servers may already have counted one TTL; see [zoo.Session.Trust].
func (s *Store) open(o *opening, class time.Duration) {
	ctx, cancel := context.WithTimeout(s.closing, openLimit)
	defer cancel()
	k := &session{store: s, class: class, watched: make(map[string]map[*claim]bool)}
	config := s.config
	config.Timeout = 2 * class
	z, err := zoo.Open(ctx, config, s.clock, zoo.Events{Changed: k.changed, Down: k.down, Up: k.up, Over: k.ended})
	s.mu.Lock()
	delete(s.openings, class)
	k.zoo = z
	switch {
	case s.closed:
		err = errClosed
	case err != nil:
	case k.over != nil:
		err = k.over
	default:
		s.sessions[class] = k
		o.session = k
	}
	o.err = err
	close(o.done)
	s.mu.Unlock()
	if z != nil && err != nil {
		z.Close()
	}
}

// barrier is a transaction without changes. A request sent after a barrier, over the
// same connection, sees every change that was answered before the barrier was sent. A
// sync does not guarantee this order. The leader answers the syncs of its own clients
// at once, from the changes applied so far. Followers may have applied more changes,
// and answered their clients.
func barrier(path string) zoo.Request { return zoo.Multi(zoo.Check(path)) }

// ask sends a request and waits for the answer.
func (k *session) ask(ctx context.Context, r zoo.Request) (*zoo.Call, error) {
	calls, err := k.zoo.Send(ctx, r)
	if err != nil {
		return nil, err
	}
	return calls[0], calls[0].Wait(ctx)
}

// watchLocked registers a claim for changes of a node, before the request goes to the
// server.
func (k *session) watchLocked(cl *claim, path string) {
	if k.watched[path] == nil {
		k.watched[path] = make(map[*claim]bool)
	}
	k.watched[path][cl] = true
	cl.watches.paths = append(cl.watches.paths, path)
}

// unwatchLocked ends the notifications of a claim. The servers keep watching the nodes
// until they are gone.
func (k *session) unwatchLocked(cl *claim) {
	for _, path := range cl.watches.paths {
		delete(k.watched[path], cl)
		if len(k.watched[path]) == 0 {
			delete(k.watched, path)
		}
	}
	cl.unwatchedLocked()
}

// changed handles a change of a watched node.
func (k *session) changed(path string, deleted bool) {
	s := k.store
	s.mu.Lock()
	var after notices
	for cl := range k.watched[path] {
		if path != cl.path() {
			cl.watches.ahead, cl.watches.first = false, deleted && path == cl.onlyAhead
			cl.changes++
			after.wakes = append(after.wakes, s.wakingLocked(cl)...)
			continue
		}
		cl.watches.node = false
		if deleted && cl.state != ending {
			after.add(s.loseLocked(cl, driver.ErrBroken))
		}
	}
	delete(k.watched, path)
	s.mu.Unlock()
	after.send()
}

// down handles a lost connection: no node is watched any longer.
func (k *session) down() {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	for _, cl := range k.store.claims {
		if cl.session == k {
			cl.unwatchedLocked()
		}
	}
	clear(k.watched)
}

// up handles a new connection, and wakes the waiters to request again.
func (k *session) up() {
	s := k.store
	s.mu.Lock()
	var after notices
	for _, cl := range s.claims {
		if cl.session == k && cl.state == waiting {
			after.wakes = append(after.wakes, s.wakingLocked(cl)...)
		}
	}
	s.mu.Unlock()
	after.send()
}

// ended handles the end of the session: all claims of the session end, too.
func (k *session) ended(err error) {
	s := k.store
	why := fmt.Errorf("%w: the session with ZooKeeper has ended: %w", driver.ErrLost, err)
	s.mu.Lock()
	k.over = err
	if s.sessions[k.class] == k {
		delete(s.sessions, k.class)
	}
	var after notices
	for _, cl := range s.claims {
		switch {
		case cl.session != k:
		case cl.state == asking || cl.state == ending:
			s.dropLocked(cl)
		case cl.state != lost:
			after.add(s.loseLocked(cl, why))
		}
	}
	s.mu.Unlock()
	after.send()
}
