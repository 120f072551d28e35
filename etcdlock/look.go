package etcdlock

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/internal/newer"
)

// A view is the state of a key in etcd, for a request.
type view struct {
	queue
	rev     int64 // of the whole etcd, when read
	hasTomb bool  // the id of the claim has a tomb
	claims  int   // on the key, also those that were not read
}

// partial reports whether claims on the key were not read, which may be ahead of the claim.
func (v view) partial() bool { return len(v.queue) < v.claims }

// read adds the claims of a key: some of them, and the first if these are not all.
func (v *view) read(key string, some, first *etcdserverpb.RangeResponse) (err error) {
	kvs := some.Kvs
	if v.claims = int(some.Count); len(kvs) < few+2 {
		v.claims = len(kvs) // The rest is behind.
	} else if first != nil && len(first.Kvs) > 0 && !slices.ContainsFunc(kvs, func(kv *mvccpb.KeyValue) bool { return kv.CreateRevision == first.Kvs[0].CreateRevision }) {
		kvs = append(kvs, first.Kvs...)
	}
	v.queue, err = readQueue(key, kvs)
	return err
}

// unchanged is the condition that no claim has arrived since.
func (v view) unchanged(folder string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(folder), "<", v.rev+1).WithPrefix()
}

// look reads the queue, and acquires the key in the same step if the queue is empty. It
// reports whether the claim is in the queue.
func (a *ask) look(ctx context.Context, was state) (v view, mine bool, err error) {
	folder := a.names.folder(a.Key)
	if was == waiting {
		if v, mine, err = a.lookAgain(ctx, a.entry.rev); err == nil && !mine {
			a.losePlace()
		}
		return v, mine, err
	}
	if v.claims = a.crowd(); v.claims > 0 {
		return v, false, nil
	}
	r, err := a.create(ctx, txn{
		key:  a.Key,
		when: []clientv3.Cmp{a.noTomb(), view{}.unchanged(folder)},
		then: []clientv3.Op{a.putNew(a.lease, 0)},
		els:  a.readsOfLook(),
	})
	if err != nil {
		return v, false, err
	}
	if r.Succeeded {
		v.rev = r.Header.Revision
		a.entry.rev, a.entry.mod = v.rev, v.rev
		v.queue, v.claims = queue{a.entry}, 1
		return v, true, nil
	}
	if v, err = a.view(r); err != nil {
		return v, false, err
	}
	i := v.index(a.ID)
	switch {
	case i >= 0 && v.partial():
		// An earlier request has created the claim, and claims just ahead may not have
		// been read.
		v, _, err = a.lookAgain(ctx, v.queue[i].rev)
		return v, v.index(a.ID) >= 0, newer.Doubtful(err)
	case a.slow(ctx, 4):
		a.noteCrowd(max(v.claims, far))
	default:
		a.noteCrowd(v.claims)
	}
	if v.partial() && a.Wait && a.entry.alone() {
		v.queue = nil // The first claim was not read.
	}
	return v, i >= 0, nil
}

// crowd returns how many claims the queue had, if the claim joins it without a look before;
// otherwise 0.
func (a *ask) crowd() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.crowds[a.Key]
	if !a.Wait || !a.entry.alone() || a.claim.elsewhere || !a.now().Before(c.until) {
		return 0
	}
	return c.claims
}

// noteCrowd records how many claims the queue has.
func (a *ask) noteCrowd(claims int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteCrowdLocked(a.Key, claims)
}

// lookAgain reads the queue for a claim with a create revision, and reports whether the claim is
// in the queue.
func (a *ask) lookAgain(ctx context.Context, rev int64) (v view, mine bool, err error) {
	ops, brief := a.reads(), a.entry.alone() && !a.elsewhere()
	if brief {
		ops = append(ops[:1], a.names.ahead(a.Key, rev)...)
	}
	r, err := a.do(ctx, txn{then: ops})
	if err == nil {
		v, err = a.view(r)
	}
	if mine = err == nil && v.index(a.ID) >= 0; brief && !mine {
		v.queue, v.claims = nil, max(v.claims, 1) // The claims that were behind were not read.
	}
	return v, mine, err
}

// losePlace notes that etcd no longer has the claim. If the claim queues again without an answer,
// nobody knows whether etcd has it.
func (a *ask) losePlace() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.claim; c.state == waiting && c.rev == a.entry.rev {
		c.state, c.ahead = asking, nil
	}
}

// noTomb is the condition that the id of the claim has no tomb.
func (a *ask) noTomb() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(a.names.tomb(a.ID)), "=", 0)
}

// reads returns the operations that read the whole queue.
func (a *ask) reads() []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(a.names.tomb(a.ID), clientv3.WithKeysOnly()),
		clientv3.OpGet(a.names.folder(a.Key), clientv3.WithPrefix()),
	}
}

// readsOfLook returns the operations that read what a claim must know of a queue before it
// joins. A claim that holds only as the first claim must know that the queue is not empty, and
// about how long it is. The first claim is for the refusal of a claim that does not wait.
func (a *ask) readsOfLook() []clientv3.Op {
	if !a.entry.alone() || a.elsewhere() {
		return a.reads()
	}
	if !a.Wait {
		return append(a.someReads(), a.names.first(a.Key))
	}
	return a.someReads()
}

// someReads returns the operations that read of a long queue a few claims in the order of their
// names, and how many there are. To find the first or the last claims, etcd reads all of them,
// while no other transaction can write.
func (a *ask) someReads() []clientv3.Op {
	ops := a.reads()
	ops[1] = clientv3.OpGet(a.names.folder(a.Key), clientv3.WithPrefix(), clientv3.WithLimit(few+2)) // few claims ahead count as a short queue
	return ops
}

// ahead returns the operations that read a claim, which has a create revision, with the last few
// claims ahead, and the first claim of the queue.
func (n names) ahead(key string, rev int64) []clientv3.Op {
	last := clientv3.OpGet(n.folder(key), clientv3.WithPrefix(), clientv3.WithLimit(few+2), clientv3.WithMaxCreateRev(rev),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
	return []clientv3.Op{last, n.first(key)}
}

// first returns the operation that reads the first claim of a queue.
func (n names) first(key string) clientv3.Op {
	return clientv3.OpGet(n.folder(key), clientv3.WithFirstCreate()...)
}

// elsewhere reports whether etcd may have the claim under another name.
func (a *ask) elsewhere() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.claim.elsewhere
}

// view returns what the reads of a queue have found.
func (a *ask) view(r answer) (v view, err error) {
	v.rev = r.Header.Revision
	v.hasTomb = len(r.kvs(0).Kvs) > 0
	var first *etcdserverpb.RangeResponse
	if len(r.Responses) > 2 {
		first = r.kvs(2)
	}
	err = v.read(a.Key, r.kvs(1), first)
	return v, err
}
