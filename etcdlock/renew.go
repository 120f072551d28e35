package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// batch is how many operations go into a step: a read for each renewed claim. etcd accepts
// 128 operations in a step.
const batch = 100

// Renew implements [driver.Store]. Claims that keep their lease cost one read per
// hundred claims. The lease is kept alive once for all claims.
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	if err := cmp.Or(s.usable(), ctx.Err()); err != nil {
		return certain(slices.Repeat([]error{err}, len(rs)))
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	errs, began := make([]error, len(rs)), s.now()
	var stay []renewal
	var running sync.WaitGroup
	for i, r := range rs {
		switch name := s.unmoved(r.Claim, began); {
		case r.Fence != 0:
			errs[i] = errRaise
		case name == "" || r.Leave:
			running.Go(func() { errs[i] = s.renew(ctx, r, began) })
		default:
			stay = append(stay, renewal{r, name, &errs[i]})
		}
	}
	for some := range slices.Chunk(stay, batch) {
		running.Go(func() { s.prolong(ctx, some, began) })
	}
	running.Wait()
	return certain(errs)
}

// A renewal renews a holding claim without a change of the lease.
type renewal struct {
	driver.Renewal
	name string // of the claim
	err  *error
}

// unmoved returns the name of a holding claim that stays on its lease when renewed, ""
// for every other claim.
func (s *Store) unmoved(dc driver.Claim, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.holdingLocked(dc.ID)
	if c == nil || c.moving || c.lease == nil || c.lease != s.leases[class(dc.TTL)] || !c.until.After(now) {
		return ""
	}
	return c.name
}

// prolong carries out renewals in one step.
func (s *Store) prolong(ctx context.Context, some []renewal, began time.Time) {
	var look []clientv3.Op
	var err error
	for _, r := range some {
		if err == nil {
			_, err = s.cover(ctx, r.TTL, began.Add(r.TTL))
		}
		// Not WithKeysOnly: since version 3.7, etcd does not return the lease then.
		look = append(look, clientv3.OpGet(r.name))
	}
	var a answer
	if err == nil {
		a, err = s.do(ctx, txn{then: look})
	}
	for n, r := range some {
		if err != nil {
			*r.err = err
		} else if kvs := a.kvs(n).Kvs; len(kvs) > 0 {
			*r.err = s.prolonged(r.Claim, began, false, kvs[0].CreateRevision, clientv3.LeaseID(kvs[0].Lease))
		} else {
			*r.err = s.gone(ctx, r.Claim)
		}
	}
}

// errMoved is why a renewal must be retried.
var errMoved = errors.New("another client has asked for the claim")

// prolonged lets a claim stand for its TTL from began. The request that began then found the claim
// in etcd, under the lease on. An Acquire never shortens what a later renewal or push has granted.
func (s *Store) prolonged(dc driver.Claim, began time.Time, acquires bool, rev int64, on clientv3.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.holdingLocked(dc.ID)
	switch {
	case c == nil || c.rev != rev:
		return driver.ErrLost
	case c.lease == nil || c.lease.id != on:
		c.moving = true // The next renewal moves the claim to the right lease.
		return errMoved
	}
	until := began.Add(dc.TTL)
	if acquires {
		until = later(c.until, until)
	}
	s.standLocked(c, until)
	return nil
}

// gone ends a claim that is no longer in etcd, and returns the reason. gone notifies the owner, too:
// the answer to an Acquire does not tell of a loss.
func (s *Store) gone(ctx context.Context, dc driver.Claim) error {
	why := driver.ErrLost
	a, err := s.do(ctx, txn{then: []clientv3.Op{clientv3.OpGet(s.names.tomb(dc.ID))}})
	if err == nil {
		if kvs := a.kvs(0).Kvs; len(kvs) > 0 && string(kvs[0].Value) == broken {
			why = driver.ErrBroken
		}
	}
	s.mu.Lock()
	c := s.holdingLocked(dc.ID)
	if c != nil {
		s.addLeftoverLocked(c) // The cleaner also removes what an earlier request has left.
	}
	s.mu.Unlock()
	if c != nil {
		s.losses.Tell(dc.Key, dc.ID, why)
	}
	return why
}

// renew renews a single claim that needs a write.
func (s *Store) renew(ctx context.Context, r driver.Renewal, began time.Time) error {
	switch err := s.adopt(ctx, r.Claim, began); {
	case errors.Is(err, errLeft):
		return nil
	case err != nil:
		return err
	case !r.Leave:
		return s.extend(ctx, r, began, false)
	}
	g, err := s.grant(ctx, r.TTL)
	if err != nil {
		return err
	}
	_, err = s.rewrite(ctx, r, &lease{granted: g})
	return err
}

// extend lets a holding claim stand for its TTL, under the lease for holders. The claim
// must be in the table.
func (s *Store) extend(ctx context.Context, r driver.Renewal, began time.Time, acquires bool) error {
	l, err := s.cover(ctx, r.TTL, began.Add(r.TTL))
	if err != nil {
		return err
	}
	s.mu.Lock()
	c := s.holdingLocked(r.ID)
	if c == nil {
		s.mu.Unlock()
		return driver.ErrLost
	}
	if !c.until.After(s.now()) {
		s.addLeftoverLocked(c)
		s.mu.Unlock()
		s.losses.Tell(r.Key, r.ID, errRanOut)
		return driver.ErrLost
	}
	s.standLocked(c, later(c.until, began.Add(r.TTL)))
	s.mu.Unlock()

	e, err := s.rewrite(ctx, r, l)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		wake(l.kick)
		return err
	case errors.Is(err, errLeft):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropLocked(c)
		return nil
	case err != nil:
		return err
	}
	return s.prolonged(r.Claim, began, acquires, e.rev, e.leaseID)
}

// adopt enters a holding claim into the table, if missing or outdated. Another client
// may have requested the claim.
func (s *Store) adopt(ctx context.Context, dc driver.Claim, began time.Time) error {
	s.mu.Lock()
	c := s.table[dc.ID]
	over := c != nil && c.over()
	known := c != nil && c.state == held && c.until.After(began)
	s.mu.Unlock()
	switch {
	case over:
		return driver.ErrLost
	case known:
		return nil
	}
	v, err := s.read(ctx, dc.Key)
	if err != nil {
		return err
	}
	i := v.index(dc.ID)
	switch {
	case i < 0:
		return s.gone(ctx, dc)
	case i >= v.held():
		return driver.ErrLost // The claim waits.
	case v.queue[i].Left:
		return errLeft
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.table[dc.ID]; c == nil {
		c = s.enterLocked(dc, nil)
		c.Span = v.queue[i].Span
		s.standLocked(c, began.Add(dc.TTL))
	}
	if c.over() || !s.learnLocked(c, v, i) {
		return driver.ErrLost
	}
	return nil
}
