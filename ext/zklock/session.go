package zklock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/zoo"
)

// A session is what the claims of one class hang on. The map is guarded by
// Store.mu.
type session struct {
	store   *Store
	zoo     *zoo.Session
	class   time.Duration
	over    error
	watched map[string]map[*claim]bool // by path
}

// An opening is an attempt to open a session, on behalf of all who wait for it.
type opening struct {
	done    chan struct{}
	session *session
	err     error
}

// openLimit bounds an attempt to open a session. It is not that of one call: it
// goes on for the next if the first has given up.
const openLimit = 10 * time.Second

// class is the TTL for which a session is made: the next above of one, one and a
// half, two, three, four, six, eight ... seconds. Longer ones than that of a
// quarter of an hour are granted for that long at a time.
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

// cover is how long a claim stands from a moment at which the session is as far
// from its end as it mostly is.
func (k *session) cover() time.Duration { return k.zoo.Timeout() / 2 }

// session returns the session for claims of this TTL, and opens it if there is
// none.
func (s *Store) session(ctx context.Context, ttl time.Duration) (*session, error) {
	if s.bad != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, s.bad)
	}
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

// open opens a session. The servers end it after two TTLs of silence, of which
// they are known to have counted one at any time; see [zoo.Session.Trust].
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
	case err != nil:
	case k.over != nil:
		err = k.over
	case s.closed:
		err = errClosed
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

// barrier is a transaction that changes nothing. What is sent after it over the same
// connection sees every change that was answered before it was sent. A sync does not do
// that: the leader answers those of its own clients at once, from what it has applied so
// far, while followers may have applied more, and told it to theirs.
func barrier(path string) zoo.Request { return zoo.Multi(zoo.Check(path)) }

// ask sends one request and waits for the answer.
func (k *session) ask(ctx context.Context, r zoo.Request) (*zoo.Call, error) {
	calls, err := k.zoo.Send(ctx, r)
	if err != nil {
		return nil, err
	}
	return calls[0], calls[0].Wait(ctx)
}

// watch lets a claim hear of a change of a node. Call it with mu held, before the
// server is told.
func (k *session) watch(cl *claim, path string) {
	if k.watched[path] == nil {
		k.watched[path] = make(map[*claim]bool)
	}
	k.watched[path][cl] = true
	cl.watching = append(cl.watching, path)
}

// unwatch ends what a claim hears. The servers go on watching the nodes until they
// are gone. Call it with mu held.
func (k *session) unwatch(cl *claim) {
	for _, path := range cl.watching {
		delete(k.watched[path], cl)
		if len(k.watched[path]) == 0 {
			delete(k.watched, path)
		}
	}
	cl.watching, cl.guarded, cl.armed, cl.front = nil, false, false, false
	cl.changes++
}

// changed hears of a node that was watched.
func (k *session) changed(path string, deleted bool) {
	s := k.store
	s.mu.Lock()
	var calls calls
	for cl := range k.watched[path] {
		if path != cl.path() {
			cl.armed, cl.front = false, deleted && path == cl.only
			cl.changes++
			calls.wakes = append(calls.wakes, s.waking(cl)...)
			continue
		}
		cl.guarded = false
		if deleted && cl.state != leaving {
			calls.add(s.lose(cl, driver.ErrBroken))
		}
	}
	delete(k.watched, path)
	s.mu.Unlock()
	calls.make()
}

// down hears that the connection is lost: nothing is watched any more.
func (k *session) down() {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	for _, cl := range k.store.claims {
		if cl.session == k {
			cl.watching, cl.guarded, cl.armed, cl.front = nil, false, false, false
			cl.changes++
		}
	}
	clear(k.watched)
}

// up hears that there is a connection again, and lets those ask who wait.
func (k *session) up() {
	s := k.store
	s.mu.Lock()
	var calls calls
	for _, cl := range s.claims {
		if cl.session == k && cl.state == waiting {
			calls.wakes = append(calls.wakes, s.waking(cl)...)
		}
	}
	s.mu.Unlock()
	calls.make()
}

// ended hears that the session is over, and all its claims with it.
func (k *session) ended(err error) {
	s := k.store
	why := fmt.Errorf("%w: the session with ZooKeeper has ended: %w", driver.ErrLost, err)
	s.mu.Lock()
	k.over = err
	if s.sessions[k.class] == k {
		delete(s.sessions, k.class)
	}
	var calls calls
	for _, cl := range s.claims {
		switch {
		case cl.session != k:
		case cl.state == asking || cl.state == leaving:
			s.drop(cl)
		case cl.state != lost:
			calls.add(s.lose(cl, why))
		}
	}
	s.mu.Unlock()
	calls.make()
}
