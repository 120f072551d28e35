package etcdlock

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// rewrite puts a holding claim under a different lease. Earlier requests may still be on
// their way. So a write counts only if the claim is unchanged since the known revision.
func (s *Store) rewrite(ctx context.Context, e *claim, l *lease, leave bool) error {
	for {
		s.mu.Lock()
		if s.table[e.ID] != e || e.state != held {
			s.mu.Unlock()
			return driver.ErrLost
		}
		e.moving = true // until the answer shows the lease
		r := s.record(e)
		r.Left = leave
		name, rev, mod := e.name, e.rev, e.mod
		s.mu.Unlock()
		a, err := s.do(ctx, txn{
			when: []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(name), "=", mod)},
			then: []clientv3.Op{clientv3.OpPut(name, r.String(), clientv3.WithLease(l.id))},
			els:  []clientv3.Op{clientv3.OpGet(name)},
		})
		if err != nil {
			return err
		}
		if a.Succeeded {
			s.rewritten(e, l, a.Header.Revision, leave)
			return nil
		}
		kvs := a.kvs(0).Kvs
		if len(kvs) == 0 || kvs[0].CreateRevision != rev {
			return s.gone(ctx, e.Claim)
		}
		p, err := readEntry(e.Key, kvs[0])
		if err != nil {
			return newer.Doubtful(err)
		}
		if p.Left && !leave {
			return errLeft
		}
		s.mu.Lock()
		if p.mod > e.mod {
			e.mod, e.phase = p.mod, p.Phase
		}
		s.mu.Unlock()
	}
}

// rewritten records the lease of a claim and the revision of the write. After a write
// with Left, nobody may renew the claim.
func (s *Store) rewritten(e *claim, l *lease, rev int64, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.table[e.ID] != e || e.state != held || rev < e.mod:
	case left:
		s.drop(e)
	default:
		e.setLease(l)
		e.mod, e.seen, e.moving = rev, rev, false
	}
}

// errLeft means the claim was renewed for the last time, and stands.
var errLeft = errors.New("the claim was left")

// renewLast puts a claim under a separate lease that nobody keeps alive.
func (s *Store) renewLast(ctx context.Context, c driver.Claim) error {
	g, err := s.grant(ctx, c.TTL)
	if err != nil {
		return err
	}
	s.mu.Lock()
	e := s.table[c.ID]
	if e == nil || e.state != held {
		s.mu.Unlock()
		return driver.ErrLost
	}
	e.TTL = c.TTL
	s.mu.Unlock()
	return s.rewrite(ctx, e, &lease{granted: g}, true)
}
