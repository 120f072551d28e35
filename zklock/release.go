package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

var errWaiting = errors.New("zklock: the claim still waits in the queue")

// Renew implements [driver.Store]. For all claims of a session, a single sync proves
// the session is alive, and a single barrier proves nobody has removed the nodes. Nodes
// not yet watched are checked once.
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	begin := s.clock.Now()
	errs := make([]error, len(rs))
	claims := make(map[*session][]int)
	found := make([]*claim, len(rs))
	s.mu.Lock()
	for i, r := range rs {
		if found[i], errs[i] = s.renewableLocked(r); errs[i] == nil {
			claims[found[i].session] = append(claims[found[i].session], i)
		}
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, at := range claims {
		all.Go(func() {
			var group []*claim
			var ttls []time.Duration
			for _, i := range at {
				group, ttls = append(group, found[i]), append(ttls, rs[i].TTL)
			}
			var answers []error
			err := retry(ctx, func() (err error) {
				answers, err = s.extend(ctx, group, ttls, begin)
				return err
			})
			for j, i := range at {
				if errs[i] = err; err == nil {
					errs[i] = answers[j]
				}
			}
		})
	}
	all.Wait()
	return answers(errs)
}

// answers returns the errors, or nil if every error is nil.
func answers(errs []error) []error {
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// renewableLocked returns the claim in the table that is to be renewed.
func (s *Store) renewableLocked(r driver.Renewal) (*claim, error) {
	cl := s.claims[nameOf(r.Claim)]
	switch {
	case s.closed:
		return nil, errClosed
	case cl == nil || cl.state == ending:
		return nil, driver.ErrLost
	case cl.state == lost:
		return nil, cl.why
	case cl.state != held:
		return nil, errWaiting
	case r.Leave:
		return nil, fmt.Errorf("%w: a lock in ZooKeeper ends with its process, and cannot be left", driver.ErrInvalid)
	case r.Fence > cl.token:
		return nil, fmt.Errorf("%w: it asks for token %d, and ZooKeeper raises none", driver.ErrInvalid, r.Fence)
	}
	return cl, nil
}

// extend lets claims of a single session stand for their ttls from begin. It returns an
// answer for every claim, or the error that prevented the answers.
func (s *Store) extend(ctx context.Context, claims []*claim, ttls []time.Duration, begin time.Duration) ([]error, error) {
	k := claims[0].session
	until := begin
	for _, ttl := range ttls {
		until = max(until, begin+min(ttl, k.cover()))
	}
	watching, err := k.watchNodes(ctx, claims)
	if err == nil {
		err = k.catchUp(ctx)
	}
	if err == nil {
		err = k.zoo.Prove(ctx, until)
	}
	if err == nil {
		err = watching.wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(claims))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, cl := range claims {
		switch cl.state {
		case held:
			cl.TTL, cl.until = ttls[i], begin+ttls[i]
		case lost:
			errs[i] = cl.why
		default:
			errs[i] = driver.ErrLost
		}
	}
	return errs, nil
}

// catchUp returns after every notification of an earlier change of a watched node.
func (k *session) catchUp(ctx context.Context) error {
	_, err := k.ask(ctx, barrier(k.store.root))
	var code zoo.Code
	if errors.As(err, &code) {
		return nil // Every answer comes after the earlier notifications.
	}
	return err
}

// watchCalls are requests to watch the nodes of claims. A request also checks that the
// node exists.
type watchCalls struct {
	session *session
	claims  []*claim
	changes []int
	calls   []*zoo.Call
}

// watchNodes sends requests for the claims that hold and are not yet watched.
func (k *session) watchNodes(ctx context.Context, claims []*claim) (*watchCalls, error) {
	w := &watchCalls{session: k}
	var requests []zoo.Request
	k.store.mu.Lock()
	for _, cl := range claims {
		if cl.state == held && !cl.watches.node {
			k.watchLocked(cl, cl.path())
			w.claims, w.changes = append(w.claims, cl), append(w.changes, cl.changes)
			requests = append(requests, zoo.Watch(cl.path()))
		}
	}
	k.store.mu.Unlock()
	if requests == nil {
		return w, nil
	}
	var err error
	w.calls, err = k.zoo.Send(ctx, requests...)
	return w, err
}

// wait handles the answers.
func (w *watchCalls) wait(ctx context.Context) error {
	s := w.session.store
	for i, call := range w.calls {
		err := call.Wait(ctx)
		cl := w.claims[i]
		switch {
		case errors.Is(err, zoo.NoNode):
			s.mu.Lock()
			var after notices
			if cl.state == held {
				after = s.loseLocked(cl, driver.ErrBroken)
			}
			s.mu.Unlock()
			after.send()
		case err != nil:
			return err
		default:
			s.mu.Lock()
			if cl.changes == w.changes[i] {
				cl.watches.node = true
			}
			s.mu.Unlock()
		}
	}
	return nil
}

// Release implements [driver.Store].
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	errs := make([]error, len(rs))
	if len(rs) == 1 {
		errs[0] = s.releaseNamed(ctx, nameOf(rs[0].Claim))
		return answers(errs)
	}
	var all sync.WaitGroup
	for i, r := range rs {
		all.Go(func() { errs[i] = s.releaseNamed(ctx, nameOf(r.Claim)) })
	}
	all.Wait()
	return answers(errs)
}

func (s *Store) releaseNamed(ctx context.Context, name name) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	cl, closed := s.claims[name], s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case cl == nil:
		return driver.ErrLost
	}
	return retry(ctx, func() error { return s.release(ctx, cl) })
}

// release removes the node of a claim.
func (s *Store) release(ctx context.Context, cl *claim) error {
	if err := cl.lock(ctx); err != nil {
		return err
	}
	defer cl.unlock()
	s.mu.Lock()
	if cl.state == lost || cl.state == dropped {
		defer s.mu.Unlock()
		if cl.state == lost {
			return cl.why
		}
		return driver.ErrLost
	}
	cl.state = ending
	s.mu.Unlock()
	err := s.resolve(ctx, cl)
	if err == nil && cl.node != "" {
		err = s.remove(ctx, cl)
	} else if err == nil {
		err = driver.ErrLost // there is no node
	}
	if err != nil && !errors.Is(err, driver.ErrLost) {
		return err
	}
	s.mu.Lock()
	s.dropLocked(cl)
	s.mu.Unlock()
	return err
}

// remove removes a known node, and the node of a reader in the phase.
func (s *Store) remove(ctx context.Context, cl *claim) error {
	if cl.joined {
		err := cl.removeBy(ctx, zoo.Multi(zoo.Delete(cl.path()), zoo.Delete(cl.member())))
		if !errors.Is(err, zoo.NoNode) {
			return err
		}
		// The reader had not entered the phase, or somebody has removed one of the
		// nodes.
		if err := cl.removeBy(ctx, zoo.Delete(cl.member())); err != nil && !errors.Is(err, zoo.NoNode) {
			return err
		}
	}
	err := cl.removeBy(ctx, zoo.Delete(cl.path()))
	switch {
	case errors.Is(err, zoo.NoNode) && !cl.tried:
		return driver.ErrLost
	case errors.Is(err, zoo.NoNode):
		return nil // the unanswered try has removed the node
	}
	return err
}

// removeBy sends a removal, and records a try with an unknown outcome.
func (cl *claim) removeBy(ctx context.Context, r zoo.Request) error {
	calls, err := cl.session.zoo.Send(ctx, r)
	if err != nil {
		return err
	}
	err = calls[0].Wait(ctx)
	if err != nil && !errors.Is(err, zoo.NoNode) {
		cl.tried = true
	}
	return err
}
