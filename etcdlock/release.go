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
	all := s.removals(rs)
	var known, unknown []*removal
	for _, r := range all {
		if r.rev > 0 {
			known = append(known, r)
		} else {
			unknown = append(unknown, r)
		}
	}
	var running sync.WaitGroup
	for len(known) > eraseBatch {
		some := known[:eraseBatch]
		known = known[eraseBatch:]
		running.Go(func() { s.removeKnown(ctx, some) })
	}
	if len(unknown) > 0 {
		running.Go(func() { s.erase(ctx, unknown) })
	}
	if len(known) > 0 {
		s.removeKnown(ctx, known) // here, since starting a goroutine takes a tenth of the time
	}
	running.Wait()
	errs := make([]error, len(rs))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range all {
		errs[i] = s.settleRemovalLocked(r)
	}
	return certain(errs)
}

// A removal removes a claim from etcd.
type removal struct {
	driver.Release        // with Late, a tomb is written for the id
	claim          *claim // in the table; nil if there is none
	own            bool   // the claim stays if another client renews it, or if it was left

	name string // of the claim, "" if unknown
	rev  int64  // of a claim whose state in etcd is known; otherwise 0

	over  bool // the claim is no longer in etcd
	there bool // the claim was in etcd
	tried bool // an unanswered attempt may have removed the claim
	err   error
}

// removals ends the claims in the table, so that nothing renews the claims.
func (s *Store) removals(rs []driver.Release) []*removal {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*removal, len(rs))
	for i, r := range rs {
		s.endAskLocked(r.ID)
		c := s.table[r.ID]
		all[i] = &removal{Release: r, claim: c}
		if c == nil {
			continue
		}
		all[i].name = c.onlyName()
		if c.state == held || c.state == waiting {
			all[i].name, all[i].rev = c.name, c.rev
		}
		s.endLocked(c)
		c.late = c.late || r.Late
		all[i].Late = c.late
	}
	return all
}

// removeKnown removes claims whose state in etcd is known. A claim is removed only if its
// create revision is unchanged.
func (s *Store) removeKnown(ctx context.Context, some []*removal) {
	if len(some) == 1 && !some[0].Late {
		s.removeOne(ctx, some[0])
		return
	}
	var ops, tombs []clientv3.Op
	var err error
	for _, r := range some {
		when, then := r.known()
		ops = append(ops, clientv3.OpTxn(when, then, nil))
		if r.Late && err == nil {
			var tomb clientv3.Op
			tomb, err = s.tomb(ctx, r.ID)
			tombs = append(tombs, tomb)
		}
	}
	var a answer
	if err == nil {
		t := txn{then: append(ops, tombs...)}
		if len(some) == 1 {
			t.key = some[0].Key
		}
		a, err = s.do(ctx, t)
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		// Requests on their way are refused for the same reason.
		a, err = s.do(ctx, txn{then: ops})
	}
	for n, r := range some {
		r.err = err
		r.there = err == nil && (a.again || a.Responses[n].GetResponseTxn().Succeeded)
	}
}

// removeOne removes one claim by a plain transaction. A nested transaction costs etcd more.
func (s *Store) removeOne(ctx context.Context, r *removal) {
	when, then := r.known()
	a, err := s.do(ctx, txn{key: r.Key, when: when, then: then})
	r.err = err
	r.there = err == nil && (a.again || a.Succeeded)
}

// known returns the step that removes a claim whose create revision is known.
func (r *removal) known() (when []clientv3.Cmp, then []clientv3.Op) {
	return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(r.name), "=", r.rev)}, []clientv3.Op{clientv3.OpDelete(r.name)}
}

// settleRemovalLocked records the outcome of a removal in the table, and returns the answer
// to the Release. The cleaner removes the claim after an error.
func (s *Store) settleRemovalLocked(r *removal) error {
	if r.err != nil {
		if r.claim == nil && s.table[r.ID] == nil {
			r.claim = s.enterLocked(r.Claim, nil)
			r.claim.late, r.claim.elsewhere = true, true
		}
		if r.claim != nil {
			s.addLeftoverLocked(r.claim)
		}
		return r.err
	}
	if r.claim != nil {
		s.dropLocked(r.claim)
	}
	if !r.there {
		return driver.ErrLost
	}
	return nil
}
