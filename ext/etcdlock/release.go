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
func (s *Store) Release(ctx context.Context, cs []driver.Claim) []error {
	if err := cmp.Or(s.usable(), ctx.Err()); err != nil {
		return slices.Repeat([]error{err}, len(cs))
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	errs := make([]error, len(cs))
	known, others := s.retire(cs)
	if len(known) == 1 && len(others) == 0 { // as mostly
		s.release(ctx, known, errs)
		return errs
	}
	var all sync.WaitGroup
	for some := range slices.Chunk(known, batch/2) {
		all.Go(func() { s.release(ctx, some, errs) })
	}
	for _, r := range others {
		all.Go(func() { errs[r.i] = s.find(ctx, r) })
	}
	all.Wait()
	return errs
}

// A release is the end of one claim.
type release struct {
	driver.Claim
	i    int    // among those that are released together
	ours *claim // nil if it is not in the table
	name string
	rev  int64
	bury bool // its id must not come back
}

// retire ends claims in the table, so that nothing renews them any more. It
// returns those of which it is known what they are in etcd, and the others.
func (s *Store) retire(cs []driver.Claim) (known, others []release) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range cs {
		r := release{Claim: c, i: i, ours: s.table[c.ID], bury: c.Late}
		if r.ours == nil {
			others = append(others, r)
			continue
		}
		sure := r.ours.state == held || r.ours.state == waiting
		s.end(r.ours)
		r.ours.loose = r.ours.loose || c.Late
		r.name, r.rev, r.bury = r.ours.name, r.ours.rev, r.ours.loose
		if sure {
			known = append(known, r)
		} else {
			others = append(others, r)
		}
	}
	return known, others
}

// release removes claims from etcd, each only if it is still the one that it was.
func (s *Store) release(ctx context.Context, some []release, errs []error) {
	var ops, tombs []clientv3.Op
	var err error
	for _, r := range some {
		is := clientv3.Compare(clientv3.CreateRevision(r.name), "=", r.rev)
		ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{is}, []clientv3.Op{clientv3.OpDelete(r.name)}, nil))
		if r.bury && err == nil {
			var tomb clientv3.Op
			tomb, err = s.bury(ctx, r.ID, released)
			tombs = append(tombs, tomb)
		}
	}
	var a answer
	if err == nil {
		a, err = s.do(ctx, txn{then: append(ops, tombs...)})
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		// What is on its way is refused for the same reason.
		a, err = s.do(ctx, txn{then: ops})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, r := range some {
		if err != nil {
			errs[r.i] = err
			s.condemn(r.ours)
			continue
		}
		if !a.Responses[n].GetResponseTxn().Succeeded && !a.again {
			errs[r.i] = driver.ErrLost
		}
		s.drop(r.ours)
	}
}

// find releases a claim of which it is not known what it is in etcd.
func (s *Store) find(ctx context.Context, r release) error {
	there, err := s.erase(ctx, r.Key, r.ID, r.bury, func(place) bool { return true })
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		if r.ours == nil && s.table[r.ID] == nil {
			r.ours = s.enter(r.Claim, nil)
			r.ours.loose = true
		}
		if r.ours != nil {
			s.condemn(r.ours)
		}
		return err
	case r.ours != nil:
		s.drop(r.ours)
	}
	if !there {
		return driver.ErrLost
	}
	return nil
}

// erase looks for a claim and removes it, if it may, and buries its id in the
// same step, unless etcd is full. It reports whether it was there.
func (s *Store) erase(ctx context.Context, key, id string, bury bool, may func(place) bool) (there bool, err error) {
	there, err = s.seek(ctx, key, id, bury, may)
	if bury && errors.Is(err, rpctypes.ErrNoSpace) {
		// What is on its way is refused for the same reason.
		there, err = s.seek(ctx, key, id, false, may)
	}
	return there, err
}

func (s *Store) seek(ctx context.Context, key, id string, bury bool, may func(place) bool) (there bool, err error) {
	var tombs []clientv3.Op
	if bury {
		tomb, err := s.bury(ctx, id, released)
		if err != nil {
			return false, err
		}
		tombs = []clientv3.Op{tomb}
	}
	for done := false; ; { // as far as an earlier attempt may have done it
		v, err := s.read(ctx, key)
		if err != nil {
			return false, err
		}
		t := txn{then: tombs}
		i := v.index(id)
		there = i >= 0 && may(v.line[i])
		switch {
		case there:
			t.when = []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(v.line[i].name), "=", v.line[i].mod)}
			t.then = append(t.then, clientv3.OpDelete(v.line[i].name))
		case !bury:
			return done, nil
		default: // It may just have come.
			t.when = []clientv3.Cmp{v.unchanged(s.names.folder(key))}
		}
		a, err := s.do(ctx, t)
		if err != nil || a.Succeeded {
			return there || done, err
		}
		done = done || there && a.again
	}
}
