package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// revokeLimit bounds the revoking of leases in a cluster that has replaced the first
// cluster.
const revokeLimit = 2 * time.Second

var (
	errReplaced = fmt.Errorf("%w: etcd was replaced, or restored from a snapshot, while this store was open: all locks of the store are lost; restart the process, or open the store anew", driver.ErrInvalid)
	errAllLost  = fmt.Errorf("%w: %w", driver.ErrLost, errReplaced)
)

// A past is what a Store knows of the cluster that has answered so far. The fields are
// guarded by mu.
type past struct {
	mu       sync.Mutex
	cluster  uint64 // 0 before the first answer
	revision int64  // the largest revision in the answers to transactions
	failure  error  // of the last call without an answer, nil if etcd has answered since
	failed   time.Time
}

// note records how a call has ended.
func (p *past) note(failure error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure, p.failed = failure, now
}

// trouble returns why etcd does not answer a call that has begun then, nil if no call has failed lately.
func (p *past) trouble(began time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed.Before(began.Add(-callLimit)) {
		return nil
	}
	return p.failure
}

func (p *past) known() (revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.revision
}

// met reports whether a cluster has answered.
func (p *past) met() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cluster != 0
}

// agrees reports whether an answer is from the cluster that has answered so far.
func (p *past) agrees(cluster uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cluster == 0 {
		p.cluster = cluster
	}
	return cluster == 0 || cluster == p.cluster // A proxy of etcd may omit the id.
}

func (p *past) grow(revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revision = max(p.revision, revision)
}

// recognize refuses the answer of a cluster other than the first, and abandons the
// Store. The new cluster does not know the locks of the Store. Its revisions, and with
// them its tokens, are unrelated to earlier ones.
func (s *Store) recognize(h *etcdserverpb.ResponseHeader) error {
	if !s.past.agrees(h.GetClusterId()) {
		s.abandon()
	}
	return s.replaced()
}

// advance is recognize for the answer of a transaction. The answer must have at least
// the revision least, the largest revision known when the request was sent. A smaller
// revision shows that etcd has lost writes. A cluster restored with the token of the
// former cluster has the same id, so only the revision shows the restore.
func (s *Store) advance(h *etcdserverpb.ResponseHeader, least int64) error {
	if h.GetRevision() < least {
		s.abandon()
	}
	if err := s.recognize(h); err != nil {
		return err
	}
	s.past.grow(h.GetRevision())
	return nil
}

// replaced returns errReplaced if the Store has met a different cluster.
func (s *Store) replaced() error {
	if err := context.Cause(s.ctx); errors.Is(err, errReplaced) {
		return err
	}
	return nil
}

// abandon ends a Store that has met a different cluster. etcd carries out a request
// before the answer shows the cluster. If the snapshot contains the leases of this
// Store, claims without a holder may be under the leases. So abandon stops keeping the
// leases alive and revokes them.
func (s *Store) abandon() {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.cancel(errReplaced)
	var leases []clientv3.LeaseID
	for _, l := range s.leases {
		if l.id != 0 {
			leases = append(leases, l.id)
		}
	}
	lost := make(map[string]string)
	for _, c := range s.table {
		if c.state == held || c.state == waiting {
			lost[c.ID] = c.key
		}
		s.dropLocked(c)
	}
	s.leftovers = nil
	s.running.Go(func() { s.revokeAll(leases) })
	s.mu.Unlock()
	s.reportLost(lost, errAllLost)
}

// revokeAll revokes leases for a limited time. A lease that cannot be revoked expires.
func (s *Store) revokeAll(leases []clientv3.LeaseID) {
	late := time.After(revokeLimit)
	for {
		leases = slices.DeleteFunc(leases, func(id clientv3.LeaseID) bool {
			err := s.revoke(id)
			return err == nil || final(err)
		})
		if len(leases) == 0 {
			return
		}
		select {
		case <-time.After(retry):
		case <-late:
			return
		}
	}
}

// certain replaces errReplaced in the errors of claims: the claims are lost.
func certain(errs []error) []error {
	for i, err := range errs {
		if errors.Is(err, errReplaced) {
			errs[i] = errAllLost
		}
	}
	return errs
}
