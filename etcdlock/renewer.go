package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// keepAliveLimit bounds the first attempt to keep a lease alive, if the client knows
// several members.
const keepAliveLimit = 500 * time.Millisecond

// runRenewer requests a lease, and keeps the lease alive until it is lost or no longer
// needed. If the first caller has given up, the renewer continues the request for the next
// caller.
func (s *Store) runRenewer(l *lease) {
	if s.grantTo(l) != nil {
		return
	}
	var stream keepAliveStream
	defer stream.stop()
	failures := 0 // in a row, at one member after the other
	members := max(len(s.client.Endpoints()), 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		timer.Reset(s.pauseLocked(l, failures, members))
		s.mu.Unlock()
		select {
		case <-timer.C:
		case <-l.kick:
		case <-s.ctx.Done():
			return
		}
		if s.endIfIdle(l) {
			return
		}
		switch err := s.keepAlive(l, &stream, failures/members); {
		case errors.Is(err, rpctypes.ErrLeaseNotFound), !l.end().After(s.now()):
			s.lose(l, err)
			return
		case err != nil:
			failures++
		default:
			failures = 0
		}
	}
}

// grantTo requests a lease from etcd, and takes the lease out of use if etcd refuses.
func (s *Store) grantTo(l *lease) error {
	ctx, cancel := context.WithTimeout(s.ctx, callLimit)
	defer cancel()
	err := s.attempts(ctx, func(ctx context.Context, _ int) error {
		g, err := s.tryGrant(ctx, l.class)
		s.mu.Lock()
		defer s.mu.Unlock()
		l.granted, l.err = g, err
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.err = err; err != nil {
		s.discardLocked(l)
	} else {
		l.endRoundLocked()
	}
	return err
}

// keepAlive keeps a lease alive for its TTL from now. An attempt may take longer after several
// rounds of failures, and at a single member, if the lease leaves time for more attempts. A busy
// member answers late, and each new attempt would make it busier.
func (s *Store) keepAlive(l *lease, stream *keepAliveStream, rounds int) error {
	sent := s.now()
	left := l.end().Sub(sent)
	limit := min(keepAliveLimit<<min(rounds, maxDoublings), left/4)
	if s.sole() {
		limit = left / 2
	}
	limit = max(keepAliveLimit, limit)
	r, err := stream.send(s.ctx, s.leaseClient, l.id, limit)
	err = cmp.Or(s.recognize(r.GetHeader()), err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.err = err; err == nil {
		l.heard, l.ttl = sent, time.Duration(r.TTL)*time.Second
	}
	l.endRoundLocked()
	return err
}

// discardLocked takes a lease out of use.
func (s *Store) discardLocked(l *lease) {
	delete(s.leases, l.class)
	l.over = true
	close(l.round)
}

// endIfIdle gives up a lease that no claim has needed for twice its TTL, but for 10 to 30 seconds.
// A request that is to put a claim under the lease may be under way for 10 seconds.
func (s *Store) endIfIdle(l *lease) bool {
	s.mu.Lock()
	if l.claims > 0 || s.now().Sub(l.used) < min(max(2*l.ttl, callLimit), 30*time.Second) {
		s.mu.Unlock()
		return false
	}
	s.discardLocked(l)
	s.mu.Unlock()
	_ = s.revoke(l.id)
	return true
}

// errLate is why a lease has ended that was kept alive too late.
var errLate = errors.New("it was not kept alive in time")

// lose ends the claims of a lost lease. etcd has ended the lease, or may have ended it by
// now, because no keep-alive was answered for so long.
func (s *Store) lose(l *lease, err error) {
	why := fmt.Errorf("%w: the lease in etcd has ended: %w", driver.ErrLost, cmp.Or(err, errLate))
	s.mu.Lock()
	s.discardLocked(l)
	lost := make(map[string]string)
	for _, c := range s.table {
		if c.lease == l {
			if c.state == held || c.state == waiting {
				lost[c.ID] = c.key
			}
			switch {
			case c.moving:
				c.setLeaseLocked(nil)
				s.addLeftoverLocked(c)
			case c.state == asking: // A request on its way may put the claim under a different lease.
				c.setLeaseLocked(nil)
			default:
				s.dropLocked(c)
			}
		}
	}
	s.mu.Unlock()
	s.reportLost(lost, why)
}

// reportLost reports lost claims, given their keys by id.
func (s *Store) reportLost(keys map[string]string, err error) {
	for id, key := range keys {
		s.losses.Tell(key, id, err)
	}
}

// A keepAliveStream keeps a single lease alive. After a failure, the stream is
// reopened at the next member.
type keepAliveStream struct {
	etcdserverpb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc
}

// errSlow is the error of a keep-alive without an answer in time.
var errSlow = errors.New("etcd has not kept the lease alive in time")

// send sends a keep-alive and returns the answer of etcd. If the lease is gone, the error
// is ErrLeaseNotFound. An attempt without an answer ends after limit.
func (b *keepAliveStream) send(ctx context.Context, at etcdserverpb.LeaseClient, id clientv3.LeaseID, limit time.Duration) (r *etcdserverpb.LeaseKeepAliveResponse, err error) {
	if b.cancel == nil {
		ctx, b.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	}
	late := time.AfterFunc(limit, b.cancel)
	if b.Lease_LeaseKeepAliveClient == nil {
		b.Lease_LeaseKeepAliveClient, err = at.LeaseKeepAlive(ctx)
	}
	if err == nil {
		err = b.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)})
	}
	if err == nil {
		r, err = b.Recv()
	}
	switch inTime := late.Stop(); {
	case err == nil && r.TTL <= 0:
		return r, rpctypes.ErrLeaseNotFound
	case err == nil:
		return r, nil
	case !inTime && ctx.Err() == nil:
		err = errSlow
	}
	b.stop()
	return nil, rpctypes.Error(err)
}

func (b *keepAliveStream) stop() {
	if b.cancel != nil {
		b.cancel()
		b.cancel, b.Lease_LeaseKeepAliveClient = nil, nil
	}
}
