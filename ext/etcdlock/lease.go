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

// A lease of etcd is shared by all claims of a Store whose TTLs are of one class.
// It is somewhat longer than they: while it is kept alive by that much in
// advance, no claim has to wait for a renewal of its own. The fields are
// guarded by Store.mu, but those that never change and the stream.
type lease struct {
	id     clientv3.LeaseID // 0 before etcd has granted it
	class  int64            // seconds that were asked for
	ttl    time.Duration    // as etcd has granted it
	heard  time.Time        // when the latest beat was sent that was answered
	used   time.Time        // when a claim last asked for it
	claims int              // that hang on it
	err    error            // of the last attempt at a beat, or to have the lease at all
	over   bool             // it is not kept alive any more
	round  chan struct{}    // closed after the next beat, or when it is over
	kick   chan struct{}    // beat now
	stream beats            // of the keeper alone
}

const (
	// idle is how long a lease without claims is kept for the next.
	idle = 30 * time.Second

	// beatLimit bounds one attempt at keeping a lease alive.
	beatLimit = 500 * time.Millisecond
)

// margin is by how much, at least, a lease is longer than claims of this TTL.
func margin(ttl time.Duration) time.Duration {
	return min(max(ttl/5, time.Second), 10*time.Second)
}

// class is how many seconds the lease of claims with this TTL has. They are few,
// so that a process with claims of all kinds has few leases: an eighth more is a
// class of its own.
func class(ttl time.Duration) int64 {
	seconds := int64((ttl + margin(ttl) + time.Second - 1) / time.Second)
	step := int64(1) << max(bits.Len64(uint64(seconds))-4, 0)
	return (seconds + step - 1) / step * step
}

// end is when etcd may let the lease go.
func (l *lease) end() time.Time { return l.heard.Add(l.ttl) }

// lasts reports whether something may hang on it at a time. Call it with Store.mu
// held.
func (l *lease) lasts(now time.Time) bool { return l != nil && !l.over && l.end().After(now) }

// pause is how long it is between two beats.
func (l *lease) pause() time.Duration { return margin(l.ttl*5/6) / 2 }

// cover returns the lease for claims of a TTL, once it is certain that it lives
// until then.
func (s *Store) cover(ctx context.Context, ttl time.Duration, until time.Time) (*lease, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, errClosed
		}
		l := s.leases[class(ttl)]
		if l == nil {
			l = &lease{class: class(ttl), round: make(chan struct{}), kick: make(chan struct{}, 1)}
			s.leases[l.class] = l
			s.running.Go(func() { s.keep(l) })
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

// grant has etcd grant a lease of l's class.
func (s *Store) grant(ctx context.Context, l *lease) error {
	return s.attempts(ctx, func(ctx context.Context, _ int) error {
		sent := s.now()
		r, err := s.client.Grant(ctx, l.class)
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.err = err; err == nil {
			l.id, l.ttl, l.heard = r.ID, time.Duration(r.TTL)*time.Second, sent
		}
		return err
	})
}

// keep asks for a lease, and keeps it alive until it is lost, or nobody needs it
// any more. It goes on asking for the next call if the first has given up.
func (s *Store) keep(l *lease) {
	ctx, cancel := context.WithTimeout(s.ctx, callLimit)
	err := s.grant(ctx, l)
	cancel()
	s.mu.Lock()
	if err != nil {
		l.err = err
		s.discard(l)
	} else {
		l.turn()
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
		if s.dismiss(l) {
			return
		}
		switch err := s.beat(l); {
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

// beat keeps a lease alive for its TTL from now.
func (s *Store) beat(l *lease) error {
	sent := s.now()
	ttl, err := l.stream.beat(s.ctx, s.beats, l.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.err = err; err == nil {
		l.heard, l.ttl = sent, ttl
	}
	l.turn()
	return err
}

// discard takes a lease out of use. Call it with mu held.
func (s *Store) discard(l *lease) {
	delete(s.leases, l.class)
	l.over = true
	close(l.round)
}

// turn begins the next round. Call it with Store.mu held.
func (l *lease) turn() {
	close(l.round)
	l.round = make(chan struct{})
}

// dismiss gives up a lease that nobody has needed for a while.
func (s *Store) dismiss(l *lease) bool {
	s.mu.Lock()
	if l.claims > 0 || s.now().Sub(l.used) < idle {
		s.mu.Unlock()
		return false
	}
	s.discard(l)
	s.mu.Unlock()
	s.revoke(l)
	return true
}

// revoke ends a lease on which nothing hangs. If that fails, it runs out.
func (s *Store) revoke(l *lease) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = s.client.Revoke(ctx, l.id)
}

// errLate is why a lease has ended that was kept alive again, but not in time.
var errLate = errors.New("it was not kept alive in time")

// lose ends the claims of a lease that etcd has let go, or may have by now because
// it has not answered for so long.
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
			case c.astray:
				c.hang(nil)
				s.condemn(c)
			case c.state == asking: // It may be under another, by what is on its way.
				c.hang(nil)
			default:
				s.drop(c)
			}
		}
	}
	s.mu.Unlock()
	for _, c := range lost {
		s.tell(c.Key, c.ID, why)
	}
}

// beats is the stream by which one lease is kept alive. It is opened anew after
// a failure, and then at the next member.
type beats struct {
	etcdserverpb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc
}

// errSlow is why a beat has failed that was not answered in time.
var errSlow = fmt.Errorf("etcd has not answered within %v", beatLimit)

// beat sends one and returns for how long the lease lives from then.
func (b *beats) beat(ctx context.Context, at etcdserverpb.LeaseClient, id clientv3.LeaseID) (ttl time.Duration, err error) {
	if b.cancel == nil {
		ctx, b.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	}
	late := time.AfterFunc(beatLimit, b.cancel)
	if b.Lease_LeaseKeepAliveClient == nil {
		b.Lease_LeaseKeepAliveClient, err = at.LeaseKeepAlive(ctx)
	}
	if err == nil {
		err = b.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)})
	}
	var r *etcdserverpb.LeaseKeepAliveResponse
	if err == nil {
		r, err = b.Recv()
	}
	switch inTime := late.Stop(); {
	case err == nil && r.TTL <= 0:
		return 0, rpctypes.ErrLeaseNotFound
	case err == nil:
		return time.Duration(r.TTL) * time.Second, nil
	case !inTime && ctx.Err() == nil:
		err = errSlow
	}
	b.stop()
	return 0, rpctypes.Error(err)
}

func (b *beats) stop() {
	if b.cancel != nil {
		b.cancel()
		b.cancel, b.Lease_LeaseKeepAliveClient = nil, nil
	}
}
