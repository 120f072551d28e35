package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// lateness is how long an Acquire may be on its way after its Release.
	lateness = 10 * time.Second

	released = "released"
	broken   = "broken"
)

// The tombs of a Store are under a separate lease that nobody keeps alive. The first tomb
// in a while requests the lease, and later tombs share it.
type tombs struct {
	sem   chan struct{} // has one slot, for the caller that requests a lease
	lease granted       // guarded by sem
}

// tomb returns the operation that writes a tomb for the id of a released claim. The tomb
// lasts at least ten seconds and at most twenty.
func (s *Store) tomb(ctx context.Context, id string) (clientv3.Op, error) {
	l, err := s.tombLease(ctx)
	if err != nil {
		return clientv3.Op{}, err
	}
	return clientv3.OpPut(s.names.tomb(id), released, clientv3.WithLease(l)), nil
}

func (s *Store) tombLease(ctx context.Context) (clientv3.LeaseID, error) {
	select {
	case s.tombs.sem <- struct{}{}:
		defer func() { <-s.tombs.sem }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if l := s.tombs.lease; l.end().Sub(s.now()) > lateness+time.Second {
		return l.id, nil
	}
	l, err := s.grant(ctx, 2*lateness)
	if err == nil {
		s.tombs.lease = l
	}
	return l.id, err
}
