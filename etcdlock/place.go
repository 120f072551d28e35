package etcdlock

import (
	"bytes"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// parts returns the operations that read the queue of a key, for a claim. An exclusive claim
// excludes every claim ahead, so in a long queue it needs only the front of the queue, the claim
// just ahead, and itself. If every waiter read the whole queue, joining would cost more than
// locking. own reads the claim, if the claim is behind the front.
func (n names) parts(c driver.Claim, own clientv3.Op) []clientv3.Op {
	folder := n.folder(c.Key)
	if !c.Exclusive() {
		return []clientv3.Op{clientv3.OpGet(folder, clientv3.WithPrefix())}
	}
	front := clientv3.OpGet(folder, clientv3.WithPrefix(), clientv3.WithLimit(few+1),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	return []clientv3.Op{front, own}
}

// neighbours returns the operation that reads the claim with a create revision, and the claim
// just ahead. The revision 0 stands for the last claim.
func (n names) neighbours(key string, rev int64) clientv3.Op {
	return clientv3.OpGet(n.folder(key), clientv3.WithPrefix(), clientv3.WithMaxCreateRev(rev), clientv3.WithLimit(2),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
}

// readView reads the parts of a queue.
func readView(key string, rev int64, parts []*etcdserverpb.ResponseOp) (v view, err error) {
	front := parts[0].GetResponseRange()
	kvs := front.Kvs
	for _, p := range parts[1:] {
		for _, kv := range p.GetResponseRange().Kvs {
			if !slices.ContainsFunc(kvs, func(other *mvccpb.KeyValue) bool { return bytes.Equal(other.Key, kv.Key) }) {
				kvs = append(kvs, kv)
			}
		}
	}
	v.rev, v.more = rev, front.More
	v.queue, err = readQueue(key, kvs)
	return v, err
}

// behind returns the view of a claim that has joined a long queue. v is the view from before; r
// has the claim and the claim just ahead.
func (v view) behind(key string, r answer) (view, error) {
	q, err := readQueue(key, r.kvs(1).Kvs)
	switch {
	case len(q) < 2:
		return view{queue: q, rev: r.Header.Revision}, err // All claims ahead have left.
	case v.queue[len(v.queue)-1].rev == q[0].rev:
		q = q[1:]
	}
	return view{queue: append(v.queue, q...), rev: r.Header.Revision, more: true}, err
}
