package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/callbacks"
)

// Terms are the limits of a server.
type Terms struct {
	MinTTL time.Duration // shorter TTLs are refused
	MaxTTL time.Duration // longer TTLs are granted for this long at a time
	Span   int           // tokens that come with each lock
}

// A Store is a driver.Store whose claims live as long as its session.
type Store struct {
	server Server
	terms  Terms
	clock  *boottime.Clock
	base   time.Time // when the clock began

	background sync.WaitGroup
	closing    context.Context // ends with Close
	close      context.CancelFunc

	losses callbacks.Losses // silent after Close

	mu      sync.Mutex
	current *session // nil while there is no session
	opening *opening // nil unless a session is being opened
	locks   map[string]*lock
	watches map[string][]*watch
	closed  bool
}

var (
	_ driver.Store    = (*Store)(nil)
	_ driver.Notifier = (*Store)(nil)
)

// New returns a store without a session: the first call opens it. A server that is a
// [boottime.Simulator] provides the clock of the store.
func New(server Server, terms Terms) *Store {
	s := &Store{
		server: server, terms: terms, clock: boottime.New(), base: time.Now(),
		locks: make(map[string]*lock), watches: make(map[string][]*watch),
	}
	if sim, ok := server.(boottime.Simulator); ok {
		s.clock = sim.Clock()
		s.base = s.base.Add(-s.clock.Now())
	}
	s.closing, s.close = context.WithCancel(context.Background())
	return s
}

// now returns the time, which goes on while the machine is suspended. The server counts
// the silence of a session meanwhile.
func (s *Store) now() time.Time { return s.base.Add(s.clock.Now()) }

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := s.valid(a); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	begin := s.now()
	name := s.server.Name(a.Key)
	for {
		k, err := s.session(ctx, a.Claim)
		if err != nil {
			return driver.Grant{}, err
		}
		s.mu.Lock()
		l := s.locks[name]
		switch {
		case l == nil && s.current != k:
			s.mu.Unlock()
			continue // The session has ended since.
		case l == nil:
			l = s.ask(k, name, a, begin)
		case l.state == held && l.claim.ID == a.ID:
			g, err := s.againLocked(ctx, l, s.granted(a.TTL), begin)
			s.mu.Unlock()
			if errors.Is(err, driver.ErrLost) {
				continue
			}
			return g, err
		case l.state == held:
			g := l.refusal(begin)
			s.mu.Unlock()
			return g, nil
		}
		changed := l.changed
		s.mu.Unlock()
		if err := k.await(ctx, changed); err != nil {
			return driver.Grant{}, err
		}
		if g, done, err := s.answer(l, a.ID, begin); done {
			return g, err
		}
	}
}

// valid says what is wrong with a request.
func (s *Store) valid(a driver.Ask) error {
	switch {
	case !a.Exclusive():
		return fmt.Errorf("%w: weight %d of %d: a session keeps exclusive locks only; readers and slots need lease mode",
			driver.ErrInvalid, a.Weight, a.Limit)
	case a.TTL < s.terms.MinTTL:
		return fmt.Errorf("%w: a TTL of %v, want at least %v", driver.ErrInvalid, a.TTL, s.terms.MinTTL)
	case a.Fence > 0:
		return fmt.Errorf("%w: it asks for token %d, and a session gives them as they come", driver.ErrInvalid, a.Fence)
	}
	return nil
}

// granted is for how long a claim of this TTL is granted at a time.
func (s *Store) granted(ttl time.Duration) time.Duration { return min(ttl, s.terms.MaxTTL) }

// Renew implements [driver.Store]. It answers from the known state of the session; one ping
// serves all claims unless a ping was answered just before.
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	begin := s.now()
	errs := make([]error, len(rs))
	locks := make([]*lock, len(rs))
	s.mu.Lock()
	k := s.current
	var longest time.Duration
	for i, r := range rs {
		locks[i], errs[i] = s.renewableLocked(r)
		if l := locks[i]; l != nil {
			// keepAlive must not lower the limit meanwhile.
			l.claim.TTL = max(l.claim.TTL, s.granted(r.TTL))
			longest = max(longest, s.granted(r.TTL))
		}
	}
	var alive error
	if longest > 0 {
		alive = s.aliveLocked(ctx, k, begin, longest)
	}
	for i, l := range locks {
		if l != nil {
			errs[i] = s.extendLocked(l, s.granted(rs[i].TTL), begin, alive)
		}
	}
	s.mu.Unlock()
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// renewableLocked returns the lock of a claim that is held.
func (s *Store) renewableLocked(r driver.Renewal) (*lock, error) {
	l := s.locks[s.server.Name(r.Key)]
	switch {
	case s.closed:
		return nil, errClosed
	case l == nil || l.state != held || l.claim.ID != r.ID:
		return nil, driver.ErrLost
	case r.Leave:
		return nil, fmt.Errorf("%w: a lock of a session ends with its client, and cannot be left", driver.ErrInvalid)
	case r.Fence > l.token:
		return nil, fmt.Errorf("%w: it asks for token %d, and a session raises none", driver.ErrInvalid, r.Fence)
	}
	return l, nil
}

// aliveLocked returns nil if the server keeps the session for ttl from begin, whatever
// happens to this process. aliveLocked unlocks mu meanwhile.
func (s *Store) aliveLocked(ctx context.Context, k *session, begin time.Time, ttl time.Duration) error {
	if begin.Sub(k.answered) <= k.sure-ttl {
		return nil
	}
	answer := make(chan error, 1)
	s.pingLocked(k, begin, max(k.limit, silence(ttl)), func(err error) { answer <- err })
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release implements [driver.Store].
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	locks := make([]*lock, len(rs))
	changes := make([]chan struct{}, len(rs))
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return slices.Repeat([]error{errClosed}, len(rs))
	}
	for i, r := range rs {
		l := s.locks[s.server.Name(r.Key)]
		if l == nil || l.claim.ID != r.ID {
			continue
		}
		if l.state == held {
			s.freeLocked(l)
		}
		l.cancelled = true // A requested lock is freed after the grant.
		locks[i], changes[i] = l, l.changed
	}
	s.mu.Unlock()
	var errs []error
	for i, l := range locks {
		if err := wait(ctx, l, changes[i]); err != nil {
			if errs == nil {
				errs = make([]error, len(rs))
			}
			errs[i] = err
		}
	}
	return errs
}

// wait waits until a lock that is being released is free.
func wait(ctx context.Context, l *lock, changed chan struct{}) error {
	if l == nil {
		return driver.ErrLost
	}
	if err := l.session.await(ctx, changed); err != nil {
		return err
	}
	return l.ended
}

// Close ends the session and every claim. Later calls fail. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.current != nil {
		s.closeLocked(s.current, errClosed)
	}
	s.mu.Unlock()
	s.close()
	s.background.Wait()
	return nil
}
