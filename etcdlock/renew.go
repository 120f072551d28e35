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
	var stay []int
	var others sync.WaitGroup
	for i, r := range rs {
		switch l := s.stays(r.Claim, began); {
		case r.Fence != 0:
			errs[i] = errRaise
		case l == nil || r.Leave:
			others.Go(func() { errs[i] = s.renew(ctx, r, began) })
		default:
			stay = append(stay, i)
		}
	}
	for some := range slices.Chunk(stay, batch) {
		others.Go(func() { s.prolong(ctx, rs, errs, some, began) })
	}
	others.Wait()
	return certain(errs)
}

// stays returns the lease of a holding claim, if the claim stays on the lease when
// renewed. Otherwise stays returns nil.
func (s *Store) stays(c driver.Claim, now time.Time) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.table[c.ID]
	if e == nil || e.state != held || e.moving || e.lease == nil || e.lease != s.leases[class(c.TTL)] || !e.until.After(now) {
		return nil
	}
	return e.lease
}

// prolong renews holding claims without a change of the lease.
func (s *Store) prolong(ctx context.Context, rs []driver.Renewal, errs []error, some []int, began time.Time) {
	var look []clientv3.Op
	fail := func(err error) {
		for _, i := range some {
			errs[i] = err
		}
	}
	names := s.namesOf(rs, some)
	for n, i := range some {
		if _, err := s.cover(ctx, rs[i].TTL, began.Add(rs[i].TTL)); err != nil {
			fail(err)
			return
		}
		look = append(look, clientv3.OpGet(names[n], clientv3.WithKeysOnly()))
	}
	a, err := s.do(ctx, txn{then: look})
	if err != nil {
		fail(err)
		return
	}
	for n, i := range some {
		if kvs := a.kvs(n).Kvs; len(kvs) > 0 {
			errs[i] = s.prolonged(rs[i].Claim, began, kvs[0].CreateRevision, clientv3.LeaseID(kvs[0].Lease))
		} else {
			errs[i] = s.gone(ctx, rs[i].Claim)
		}
	}
}

// namesOf returns the names of claims that were in the table a moment ago.
func (s *Store) namesOf(rs []driver.Renewal, some []int) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range some {
		name := s.names.folder(rs[i].Key) // a missing key
		if c := s.table[rs[i].ID]; c != nil {
			name = c.name
		}
		names = append(names, name)
	}
	return names
}

// errMoved is why a renewal must be retried.
var errMoved = errors.New("another client has asked for the claim")

// prolonged lets a claim stand for its TTL from began. The request that began then
// found the claim in etcd, under the lease on.
func (s *Store) prolonged(c driver.Claim, began time.Time, rev int64, on clientv3.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.table[c.ID]
	switch {
	case e == nil || e.state != held || e.rev != rev:
		return driver.ErrLost
	case e.lease == nil || e.lease.id != on:
		e.moving = true // The next renewal moves the claim to the right lease.
		return errMoved
	}
	e.TTL = c.TTL
	s.stand(e, began.Add(c.TTL))
	return nil
}

// gone ends a claim that is no longer in etcd, and returns the reason.
func (s *Store) gone(ctx context.Context, c driver.Claim) error {
	a, err := s.do(ctx, txn{then: []clientv3.Op{clientv3.OpGet(s.names.tomb(c.ID))}})
	s.mu.Lock()
	if e := s.table[c.ID]; e != nil && e.state == held {
		s.addLeftover(e) // The cleaner also removes what an earlier request has left.
	}
	s.mu.Unlock()
	if err == nil {
		if kvs := a.kvs(0).Kvs; len(kvs) > 0 && string(kvs[0].Value) == broken {
			return driver.ErrBroken
		}
	}
	return driver.ErrLost
}

// renew renews a single claim that needs a write.
func (s *Store) renew(ctx context.Context, r driver.Renewal, began time.Time) error {
	switch err := s.adopt(ctx, r.Claim, began); {
	case errors.Is(err, errLeft):
		return nil
	case err != nil:
		return err
	case r.Leave:
		return s.renewLast(ctx, r.Claim)
	}
	return s.extend(ctx, r.Claim, began)
}

// extend lets a holding claim stand for its TTL, under the lease for holders. The claim
// must be in the table.
func (s *Store) extend(ctx context.Context, c driver.Claim, began time.Time) error {
	l, err := s.cover(ctx, c.TTL, began.Add(c.TTL))
	if err != nil {
		return err
	}
	s.mu.Lock()
	e := s.table[c.ID]
	if e == nil || e.state != held {
		s.mu.Unlock()
		return driver.ErrLost
	}
	if !e.until.After(s.now()) {
		s.addLeftover(e)
		s.mu.Unlock()
		s.losses.Tell(c.Key, c.ID, errRanOut)
		return driver.ErrLost
	}
	s.stand(e, later(e.until, began.Add(c.TTL)))
	e.TTL = c.TTL
	s.mu.Unlock()

	switch err := s.rewrite(ctx, e, l, false); {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		wake(l.kick)
		return err
	case errors.Is(err, errLeft):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.table[c.ID] == e {
			s.drop(e)
		}
		return nil
	case err != nil:
		return err
	}
	s.mu.Lock()
	rev := e.rev
	s.mu.Unlock()
	return s.prolonged(c, began, rev, l.id)
}

// adopt enters a holding claim into the table, if missing or outdated. Another client
// may have requested the claim.
func (s *Store) adopt(ctx context.Context, c driver.Claim, began time.Time) error {
	s.mu.Lock()
	e := s.table[c.ID]
	known := e != nil && e.state == held && e.until.After(began)
	over := e != nil && e.over()
	s.mu.Unlock()
	if known {
		return nil
	}
	if over {
		return driver.ErrLost
	}
	v, err := s.read(ctx, c.Key)
	if err != nil {
		return err
	}
	i := v.index(c.ID)
	switch {
	case i < 0:
		return s.gone(ctx, c)
	case i >= v.held():
		return driver.ErrLost // The claim waits.
	case v.queue[i].Left:
		return errLeft
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e = s.table[c.ID]; e == nil {
		e = s.enter(c, nil)
		e.span = v.queue[i].Span
		s.stand(e, began.Add(c.TTL))
	}
	if e.over() || !s.learn(e, v, i) {
		return driver.ErrLost
	}
	return nil
}
