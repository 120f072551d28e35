package etcdlock

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// errLeft means the claim was renewed for the last time, and stands.
var errLeft = errors.New("the claim was left")

// rewrite puts a holding claim under a different lease. Earlier requests may still be on
// their way. So a write counts only if the claim is unchanged since the known revision.
// rewrite returns what it has written.
func (s *Store) rewrite(ctx context.Context, r driver.Renewal, l *lease) (e entry, err error) {
	for {
		s.mu.Lock()
		c := s.holdingLocked(r.ID)
		if c == nil {
			s.mu.Unlock()
			return e, driver.ErrLost
		}
		c.moving = true // until the answer shows the lease
		e = c.entry
		s.mu.Unlock()
		e.TTL, e.Left, e.Client, e.leaseID = r.TTL, r.Leave, s.id, l.id
		a, err := s.do(ctx, txn{
			when: []clientv3.Cmp{e.unwritten()},
			then: []clientv3.Op{e.put()},
			els:  []clientv3.Op{clientv3.OpGet(e.name)},
		})
		if err != nil {
			return e, err
		}
		if a.Succeeded {
			e.mod = a.Header.Revision
			s.rewritten(c, e, l)
			return e, nil
		}
		kvs := a.kvs(0).Kvs
		if len(kvs) == 0 || kvs[0].CreateRevision != e.rev {
			return e, s.gone(ctx, r.Claim)
		}
		now, err := readEntry(r.Key, kvs[0])
		if err != nil {
			return e, newer.Doubtful(err)
		}
		if now.Left && !r.Leave {
			return e, errLeft
		}
		s.mu.Lock()
		if now.mod > c.mod {
			c.know(now)
		}
		s.mu.Unlock()
	}
}

// rewritten records the written entry of a claim and its lease. After a write with Left,
// nobody may renew the claim.
func (s *Store) rewritten(c *claim, e entry, l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.holdingLocked(e.ID) != c || e.mod < c.mod:
	case e.Left:
		s.dropLocked(c)
	default:
		c.setLeaseLocked(l)
		c.entry, c.seen, c.moving = e, e.mod, false
	}
}
