package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// A lease is an etcd lease, shared by the claims of a Store with TTLs of the same
// class. The lease is somewhat longer than the TTLs. While the lease is kept alive by
// this margin in advance, no claim waits for a separate renewal. The fields are guarded
// by Store.mu, except the constant fields and the stream.
type lease struct {
	id     clientv3.LeaseID // 0 before etcd has granted the lease
	class  int64            // requested seconds
	ttl    time.Duration    // granted by etcd
	heard  time.Time        // when the latest answered keep-alive was sent
	used   time.Time        // when a claim last requested the lease
	claims int              // number of claims under the lease
	err    error            // of the last attempt to grant the lease or to keep it alive
	over   bool             // no longer kept alive
	round  chan struct{}    // closed after the next keep-alive, or when over
	kick   chan struct{}    // requests a keep-alive now
	stream keepAliveStream  // used by the renewer only
}

const (
	// idle is how long a lease without claims is kept for the next claim.
	idle = 30 * time.Second

	// keepAliveLimit bounds a single attempt to keep a lease alive.
	keepAliveLimit = 500 * time.Millisecond
)

// margin returns the least time by which a lease is longer than claims of this TTL.
func margin(ttl time.Duration) time.Duration {
	return min(max(ttl/5, time.Second), 10*time.Second)
}

// class returns the seconds of the lease for claims with this TTL. There are few
// classes, so that a process with claims of many TTLs has few leases: a lease an eighth
// longer is a separate class.
func class(ttl time.Duration) int64 {
	seconds := int64((ttl + margin(ttl) + time.Second - 1) / time.Second)
	step := int64(1) << max(bits.Len64(uint64(seconds))-4, 0)
	return (seconds + step - 1) / step * step
}

// end returns the time from which etcd may end the lease.
func (l *lease) end() time.Time { return l.heard.Add(l.ttl) }

// lasts reports whether a claim may be under the lease at a time. Call it with Store.mu
// held.
func (l *lease) lasts(now time.Time) bool { return l != nil && !l.over && l.end().After(now) }

// pause returns the time between two keep-alives.
func (l *lease) pause() time.Duration { return margin(l.ttl*5/6) / 2 }

// cover returns the lease for claims of a TTL, once the lease is certain to live until
// the given time.
func (s *Store) cover(ctx context.Context, ttl time.Duration, until time.Time) (*lease, error) {
	for {
		s.mu.Lock()
		if s.ctx.Err() != nil {
			s.mu.Unlock()
			return nil, context.Cause(s.ctx)
		}
		l := s.leases[class(ttl)]
		if l == nil {
			l = &lease{class: class(ttl), round: make(chan struct{}), kick: make(chan struct{}, 1)}
			s.leases[l.class] = l
			s.running.Go(func() { s.runRenewer(l) })
		}
		l.used = s.now()
		if !l.end().Before(until) {
			s.mu.Unlock()
			return l, nil
		}
		l.hurry()
		round := l.round
		s.mu.Unlock()
		select {
		case <-round:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		refused, last := l.over && l.id == 0, l.err
		s.mu.Unlock()
		switch {
		case refused:
			return nil, last
		case ctx.Err() != nil && last != nil:
			return nil, ended(ctx, last)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}

func (l *lease) hurry() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// grant requests a lease of l's class from etcd.
func (s *Store) grant(ctx context.Context, l *lease) error {
	return s.attempts(ctx, func(ctx context.Context, _ int) error {
		sent := s.now()
		r, err := s.client.Grant(ctx, l.class)
		if err == nil {
			err = s.recognize(r.ResponseHeader)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.err = err; err == nil {
			l.id, l.ttl, l.heard = r.ID, time.Duration(r.TTL)*time.Second, sent
		}
		return err
	})
}

// runRenewer requests a lease, and keeps the lease alive until it is lost or no longer
// needed. If the first caller has given up, the renewer continues the request for the next
// caller.
func (s *Store) runRenewer(l *lease) {
	ctx, cancel := context.WithTimeout(s.ctx, callLimit)
	err := s.grant(ctx, l)
	cancel()
	s.mu.Lock()
	if err != nil {
		l.err = err
		s.discard(l)
	} else {
		l.endRound()
	}
	s.mu.Unlock()
	if err != nil {
		return
	}
	defer l.stream.stop()
	timer := time.NewTimer(l.pause())
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.kick:
		case <-s.ctx.Done():
			return
		}
		if s.endIfIdle(l) {
			return
		}
		switch err := s.keepAlive(l); {
		case errors.Is(err, rpctypes.ErrLeaseNotFound), !l.end().After(s.now()):
			s.lose(l, err)
			return
		case err != nil:
			timer.Reset(pause)
		default:
			timer.Reset(l.pause())
		}
	}
}

// keepAlive keeps a lease alive for its TTL from now.
func (s *Store) keepAlive(l *lease) error {
	sent := s.now()
	r, err := l.stream.send(s.ctx, s.leaseClient, l.id)
	err = cmp.Or(s.recognize(r.GetHeader()), err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.err = err; err == nil {
		l.heard, l.ttl = sent, time.Duration(r.TTL)*time.Second
	}
	l.endRound()
	return err
}

// discard takes a lease out of use. Call it with mu held.
func (s *Store) discard(l *lease) {
	delete(s.leases, l.class)
	l.over = true
	close(l.round)
}

// endRound ends a round and begins the next. Call it with Store.mu held.
func (l *lease) endRound() {
	close(l.round)
	l.round = make(chan struct{})
}

// endIfIdle gives up a lease that no claim has needed for a while.
func (s *Store) endIfIdle(l *lease) bool {
	s.mu.Lock()
	if l.claims > 0 || s.now().Sub(l.used) < idle {
		s.mu.Unlock()
		return false
	}
	s.discard(l)
	s.mu.Unlock()
	_ = s.revoke(l.id)
	return true
}

// revoke ends a lease and the claims under it. If revoke fails, the lease expires.
func (s *Store) revoke(id clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := s.client.Revoke(ctx, id)
	return err
}

// errLate is why a lease has ended that was kept alive too late.
var errLate = errors.New("it was not kept alive in time")

// lose ends the claims of a lost lease. etcd has ended the lease, or may have ended it by
// now, because no keep-alive was answered for so long.
func (s *Store) lose(l *lease, err error) {
	why := fmt.Errorf("%w: the lease in etcd has ended: %w", driver.ErrLost, cmp.Or(err, errLate))
	s.mu.Lock()
	s.discard(l)
	var lost []driver.Claim
	for _, c := range s.table {
		if c.lease == l {
			if c.state == held || c.state == waiting {
				lost = append(lost, c.Claim)
			}
			switch {
			case c.moving:
				c.setLease(nil)
				s.addLeftover(c)
			case c.state == asking: // A request on its way may put the claim under a different lease.
				c.setLease(nil)
			default:
				s.drop(c)
			}
		}
	}
	s.mu.Unlock()
	for _, c := range lost {
		s.losses.Tell(c.Key, c.ID, why)
	}
}

// A keepAliveStream keeps a single lease alive. After a failure, the stream is
// reopened at the next member.
type keepAliveStream struct {
	etcdserverpb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc
}

// errSlow is the error of a keep-alive without an answer in time.
var errSlow = fmt.Errorf("etcd has not answered within %v", keepAliveLimit)

// send sends a keep-alive and returns the answer of etcd. If the lease is gone, the error is
// ErrLeaseNotFound.
func (b *keepAliveStream) send(ctx context.Context, at etcdserverpb.LeaseClient, id clientv3.LeaseID) (r *etcdserverpb.LeaseKeepAliveResponse, err error) {
	if b.cancel == nil {
		ctx, b.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	}
	late := time.AfterFunc(keepAliveLimit, b.cancel)
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
