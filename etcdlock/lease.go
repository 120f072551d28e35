package etcdlock

import (
	"context"
	"math/bits"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A granted is a lease as granted by etcd.
type granted struct {
	id    clientv3.LeaseID // 0 before etcd has granted the lease
	ttl   time.Duration
	heard time.Time // when the last answered grant or keep-alive was sent
}

// end returns the time from which etcd may end the lease.
func (g granted) end() time.Time { return g.heard.Add(g.ttl) }

// A lease is an etcd lease, shared by the claims of a Store with TTLs of the same
// class. The lease is somewhat longer than the TTLs. While its renewer keeps the lease
// alive by this margin in advance, no claim waits for a separate renewal. The fields are
// guarded by Store.mu, except the constant fields.
type lease struct {
	granted
	class  int64         // requested seconds
	used   time.Time     // when a claim last requested the lease
	claims int           // number of claims under the lease
	err    error         // of the last attempt to grant the lease or to keep it alive
	over   bool          // no longer kept alive
	round  chan struct{} // closed after the next keep-alive, or when over
	kick   chan struct{} // wakes the renewer
}

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

// lastsLocked reports whether a claim may be under the lease at a time.
func (l *lease) lastsLocked(now time.Time) bool { return l != nil && !l.over && l.end().After(now) }

// pauseLocked returns the time until the next keep-alive of a lease, after so many failures in a row.
// An etcd that is too busy refuses to keep leases alive. After that, the pause is an eighth of the
// time that the lease still has. A lease under which all claims wait is kept alive three times in its
// TTL, if it is then long enough for every place.
func (s *Store) pauseLocked(l *lease, failures, members int) time.Duration {
	usual := margin(l.ttl*5/6) * 3 / 4
	switch rounds := failures / members; {
	case rounds > 0:
		return max(pause<<min(rounds, maxDoublings), l.end().Sub(s.now())/8)
	case failures > 0:
		return pause
	case l.ttl-l.ttl/3 >= book.Longest(driver.Claim{TTL: l.ttl}) && s.allWaitLocked(l):
		return l.ttl / 3
	}
	return usual
}

// allWaitLocked reports whether there are claims under a lease, and all of them wait.
func (s *Store) allWaitLocked(l *lease) bool {
	for _, c := range s.table {
		if c.lease == l && c.state != waiting {
			return false
		}
	}
	return l.claims > 0
}

// endRoundLocked ends a round and begins the next.
func (l *lease) endRoundLocked() {
	close(l.round)
	l.round = make(chan struct{})
}

// wake wakes a goroutine that receives from c, which has room for one message.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

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
		covered := !l.end().Before(until)
		s.mu.Unlock()
		if covered {
			return l, nil
		}
		s.awaitRound(ctx, l)
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
		case last != nil:
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
}

// awaitRound wakes the renewer of a lease, and waits until the round has ended. It
// reports whether the round has ended.
func (s *Store) awaitRound(ctx context.Context, l *lease) bool {
	s.mu.Lock()
	wake(l.kick) // If the lease is over already, so is the round.
	round := l.round
	s.mu.Unlock()
	select {
	case <-round:
		return true
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return false
}

// leaseOfLocked returns the lease of this Store with an id, nil if there is none.
func (s *Store) leaseOfLocked(id clientv3.LeaseID) *lease {
	for _, l := range s.leases {
		if l.id == id {
			return l
		}
	}
	return nil
}

// grant requests a lease from etcd that nobody keeps alive.
func (s *Store) grant(ctx context.Context, ttl time.Duration) (g granted, err error) {
	err = s.attempts(ctx, func(ctx context.Context, _ int) error {
		g, err = s.tryGrant(ctx, int64((ttl+time.Second-1)/time.Second))
		return err
	})
	return g, err
}

func (s *Store) tryGrant(ctx context.Context, seconds int64) (granted, error) {
	sent := s.now()
	r, err := s.client.Grant(ctx, seconds)
	if err == nil {
		err = s.recognize(r.ResponseHeader)
	}
	if err != nil {
		return granted{}, err
	}
	return granted{r.ID, time.Duration(r.TTL) * time.Second, sent}, nil
}

// revoke ends a lease and the claims under it. If revoke fails, the lease expires.
func (s *Store) revoke(id clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := s.client.Revoke(ctx, id)
	return err
}
