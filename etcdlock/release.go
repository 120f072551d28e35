package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// Release implements [driver.Store].
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	if err := cmp.Or(s.usable(), ctx.Err()); err != nil {
		return certain(slices.Repeat([]error{err}, len(rs)))
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	errs := make([]error, len(rs))
	known, others := s.retire(rs)
	if len(known) == 1 && len(others) == 0 { // the usual case
		s.release(ctx, known, errs)
		return certain(errs)
	}
	var all sync.WaitGroup
	for some := range slices.Chunk(known, eraseBatch) {
		all.Go(func() { s.release(ctx, some, errs) })
	}
	all.Go(func() { s.find(ctx, others, errs) })
	all.Wait()
	return certain(errs)
}

// A release is the end of a single claim.
type release struct {
	driver.Release
	i    int    // index among the claims released together
	ours *claim // nil if the claim is not in the table
	name string
	rev  int64
}

// retire ends claims in the table, so that nothing renews them. known are the claims
// whose state in etcd is known.
func (s *Store) retire(rs []driver.Release) (known, others []release) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range rs {
		r := release{Release: r, i: i, ours: s.table[r.ID]}
		if r.ours == nil {
			others = append(others, r)
			continue
		}
		sure := r.ours.state == held || r.ours.state == waiting
		s.end(r.ours)
		r.ours.late = r.ours.late || r.Late
		r.name, r.rev, r.Late = r.ours.name, r.ours.rev, r.ours.late
		if sure {
			known = append(known, r)
		} else {
			others = append(others, r)
		}
	}
	return known, others
}

// release removes claims from etcd. A claim is removed only if its create revision is
// unchanged.
func (s *Store) release(ctx context.Context, some []release, errs []error) {
	var ops, tombs []clientv3.Op
	var err error
	for _, r := range some {
		is := clientv3.Compare(clientv3.CreateRevision(r.name), "=", r.rev)
		ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{is}, []clientv3.Op{clientv3.OpDelete(r.name)}, nil))
		if r.Late && err == nil {
			var tomb clientv3.Op
			tomb, err = s.tomb(ctx, r.ID)
			tombs = append(tombs, tomb)
		}
	}
	var a answer
	if err == nil {
		a, err = s.do(ctx, txn{then: append(ops, tombs...)})
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		// Requests on their way are refused for the same reason.
		a, err = s.do(ctx, txn{then: ops})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, r := range some {
		if err != nil {
			errs[r.i] = err
			s.addLeftover(r.ours)
			continue
		}
		if !a.Responses[n].GetResponseTxn().Succeeded && !a.again {
			errs[r.i] = driver.ErrLost
		}
		s.drop(r.ours)
	}
}

// find releases claims whose state in etcd is unknown.
func (s *Store) find(ctx context.Context, some []release, errs []error) {
	all := make([]*removal, len(some))
	for i, r := range some {
		all[i] = &removal{Release: r.Release}
	}
	s.erase(ctx, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range some {
		errs[r.i] = s.found(r, all[i])
	}
}

// found records the outcome of a claim's removal in the table. Call it with mu held.
func (s *Store) found(r release, was *removal) error {
	switch {
	case was.err != nil:
		if r.ours == nil && s.table[r.ID] == nil {
			r.ours = s.enter(r.Claim, nil)
			r.ours.late = true
		}
		if r.ours != nil {
			s.addLeftover(r.ours)
		}
		return was.err
	case r.ours != nil:
		s.drop(r.ours)
	}
	if !was.there {
		return driver.ErrLost
	}
	return nil
}
