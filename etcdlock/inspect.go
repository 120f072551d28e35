package etcdlock

import (
	"context"
	"iter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// Holders implements [driver.Inspector].
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	v, err := s.read(ctx, key)
	if err != nil {
		return nil, err
	}
	q := v.queue
	left, err := s.left(ctx, q)
	if err != nil {
		return nil, err
	}
	holders := make([]driver.Holder, len(q))
	held := q.held()
	for i := range q {
		h := q[i].holder()
		h.Left = min(left[q[i].leaseID], q[i].TTL)
		if i >= held {
			h.Fence, h.Waiting = 0, true
		}
		holders[i] = h
	}
	return holders, nil
}

// read returns the queue of a key.
func (s *Store) read(ctx context.Context, key string) (v view, err error) {
	if err := s.usable(); err != nil {
		return v, err
	}
	a, err := s.do(ctx, txn{then: []clientv3.Op{clientv3.OpGet(s.names.folder(key), clientv3.WithPrefix())}})
	if err != nil {
		return v, err
	}
	v.rev = a.Header.Revision
	err = v.read(key, a.kvs(0), nil)
	return v, err
}

// left returns the remaining time of the leases of a queue.
func (s *Store) left(ctx context.Context, q queue) (map[clientv3.LeaseID]time.Duration, error) {
	all := make(map[clientv3.LeaseID]time.Duration)
	for i := range q {
		id := q[i].leaseID
		if _, known := all[id]; known {
			continue
		}
		err := s.attempts(ctx, func(ctx context.Context, _ int) error {
			r, err := s.client.TimeToLive(ctx, id)
			if err == nil {
				all[id] = max(time.Duration(r.TTL)*time.Second, 0)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// page is how many claims Keys reads at a time.
const page = 1000

// Keys implements [driver.Inspector].
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.usable(); err != nil {
			yield("", err)
			return
		}
		from := s.names.beginning(prefix)
		end := clientv3.GetPrefixRangeEnd(from)
		var last string
		for more := true; more; {
			a, err := s.do(ctx, txn{then: []clientv3.Op{
				clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(page)),
			}})
			if err != nil {
				yield("", err)
				return
			}
			r := a.kvs(0)
			for _, kv := range r.Kvs {
				from = string(kv.Key) + "\x00"
				key, ok := s.names.key(string(kv.Key))
				if !ok || key == last {
					continue
				}
				if last = key; !yield(key, nil) {
					return
				}
			}
			more = r.More
		}
	}
}

// Break implements [driver.Inspector].
func (s *Store) Break(ctx context.Context, key, id string) error {
	v, err := s.read(ctx, key)
	if err != nil {
		return err
	}
	for _, e := range v.queue {
		if driver.PublicID(e.ID) == id {
			return s.breakClaim(ctx, e)
		}
	}
	return driver.ErrLost
}

func (s *Store) breakClaim(ctx context.Context, e entry) error {
	lease, err := s.tombLease(ctx)
	if err != nil {
		return err
	}
	under := clientv3.WithLease(lease)
	a, err := s.do(ctx, txn{
		when: []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(e.name), "=", e.rev)},
		then: []clientv3.Op{
			clientv3.OpDelete(e.name),
			clientv3.OpPut(s.names.tomb(e.ID), broken, under),
			clientv3.OpPut(s.names.notices(e.Client)+driver.PublicID(e.ID), "", under),
		},
	})
	if err != nil {
		return err
	}
	if !a.Succeeded && !a.again {
		return driver.ErrLost
	}
	return nil
}
