package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/holdfast-go/holdfast/driver"
)

// Acquire implements [driver.Store].
//
// An Acquire whose context ends goes on for the next Acquire of the claim, until etcd answers or
// callLimit is over. So a claim has one request under way, however often its owner asks. An etcd
// that answers late would otherwise do the work of all requests, and answer later still.
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := cmp.Or(s.usable(), check(a), ctx.Err()); err != nil {
		return driver.Grant{}, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	for {
		began := s.now()
		call, err := s.ask(ctx, a, began)
		if err != nil {
			return driver.Grant{}, err
		}
		select {
		case <-call.done:
		case <-ctx.Done():
			select {
			case <-call.done:
			default:
				return driver.Grant{}, s.cutShort(ctx, began)
			}
		}
		late := max(began.Sub(call.began), 0)
		switch {
		case overdue(call.err) && ctx.Err() == nil: // The time of the Acquire was over, not that of this caller.
		case late > 0 && call.err == nil && (call.grant.OK && late > a.TTL/2 || !call.grant.OK && !a.Wait):
		default:
			return after(late, call.grant), call.err
		}
	}
}

// ask returns the Acquire under way for a claim, or begins one. An Acquire under way on other terms
// ends first: its refusal would end the claim of the next.
func (s *Store) ask(ctx context.Context, a driver.Ask, began time.Time) (*ask, error) {
	for {
		call, fits, err := s.find(ctx, a, began)
		if err != nil || fits {
			return call, err
		}
		select {
		case <-call.done:
		case <-ctx.Done():
			return nil, s.cutShort(ctx, began)
		}
	}
}

// cutShort returns the error of a caller whose context has ended, with the trouble of etcd since.
func (s *Store) cutShort(ctx context.Context, began time.Time) error {
	return ended(ctx, cmp.Or(s.past.trouble(began), ctx.Err()))
}

// find returns the Acquire under way for a claim, or begins one. It reports whether the Acquire is on
// the terms of the caller, and ends it otherwise.
func (s *Store) find(ctx context.Context, a driver.Ask, began time.Time) (call *ask, fits bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, false, context.Cause(s.ctx)
	}
	switch call = s.asks[a.ID]; {
	case call == nil:
		return s.beginLocked(ctx, a, began), true, nil
	case call.settled:
		return call, false, nil
	case call.Claim != a.Claim || call.Wait != a.Wait:
		call.endLocked()
		return call, false, nil
	}
	call.wanted, call.Span = later(call.wanted, began), a.Span
	if c := s.table[a.ID]; c != nil && !c.over() {
		if c.state != held {
			c.Span = span(a)
		}
		s.standLocked(c, later(c.until, began.Add(call.stands())))
	}
	return call, true, nil
}

// beginLocked begins an Acquire.
func (s *Store) beginLocked(ctx context.Context, a driver.Ask, began time.Time) *ask {
	call := &ask{Ask: a, Store: s, began: began, wanted: began, done: make(chan struct{})}
	s.asks[a.ID] = call
	ctx = context.WithValue(ctx, firstDeadline{}, deadline(ctx))
	ctx, call.cancel = context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	s.running.Go(func() { call.run(ctx) })
	return call
}

// endLocked ends an Acquire, which no further caller may join.
func (a *ask) endLocked() {
	a.ended, a.settled = true, true
	a.cancel()
}

// run carries out the Acquire.
func (a *ask) run(ctx context.Context) {
	defer close(a.done)
	defer a.cancel()
	defer a.beginRead(a.Key)()
	a.awaitNotices(ctx)
	a.grant, a.err = a.try(ctx)
	if errors.Is(a.err, rpctypes.ErrLeaseNotFound) {
		a.mu.Lock()
		a.settled = a.ended
		a.mu.Unlock()
		if a.recheck(ctx) {
			a.began = a.now()
			a.grant, a.err = a.try(ctx)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended && overdue(a.err) {
		a.err = errEnded
	}
	delete(a.asks, a.ID)
}

// after returns a grant as it is a while after the Acquire has begun.
func after(late time.Duration, g driver.Grant) driver.Grant {
	if g.OK {
		g.TTL = max(g.TTL-late, 1) // 0 would be for ever
	}
	g.Kept = max(g.Kept-late, 0)
	return g
}

// stands returns how long the claim stands after a request.
func (a *ask) stands() time.Duration {
	if a.Wait {
		return a.Alive()
	}
	return a.TTL
}

// endAskLocked ends the Acquire under way of a claim that is released. All its requests were sent
// before the tomb of the claim.
func (s *Store) endAskLocked(id string) {
	if call := s.asks[id]; call != nil {
		call.released = true
		call.endLocked()
	}
}
