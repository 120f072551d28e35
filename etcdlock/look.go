package etcdlock

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/internal/book"
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
	} else if first != nil && !slices.ContainsFunc(kvs, func(kv *mvccpb.KeyValue) bool { return kv.CreateRevision == first.Kvs[0].CreateRevision }) {
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
	r, err := a.do(ctx, txn{
		key:  a.Key,
		when: []clientv3.Cmp{a.noTomb(), view{}.unchanged(folder)},
		then: []clientv3.Op{a.create(a.lease, 0)},
		els:  a.readsOfLook(),
	})
	if r.again {
		a.noteLate()
	}
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
		a.noteCrowd(max(v.claims, few+1))
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
// about how long it is. Of a long queue such a claim reads a few claims in the order of their
// names. To find the first or the last claims, etcd reads all of them, while no other transaction
// can write. The first claim is for the refusal of a claim that does not wait.
func (a *ask) readsOfLook() []clientv3.Op {
	if !a.entry.alone() || a.elsewhere() {
		return a.reads()
	}
	ops := a.reads()
	ops[1] = clientv3.OpGet(a.names.folder(a.Key), clientv3.WithPrefix(), clientv3.WithLimit(few+2))
	if !a.Wait {
		ops = append(ops, a.names.ahead(a.Key, 0)[1])
	}
	return ops
}

// readsOfJoin returns the operations that read what a claim must know of the queue that it has
// joined. A claim that holds beside no other claim waits for the claim just ahead. Of a long queue
// such a claim reads the first claim and the last few: if each of n clients read the whole queue,
// n joins would transfer n²/2 claims.
//
// A claim that may have a second name must see all claims to find itself. The core never requests
// a claim over two clients. If a second client did so for a claim in the middle of a long queue, it
// would not find the claim and would enter it again. Both entries would count as separate claims,
// and the second would stay for a few seconds after the release of the first.
func (a *ask) readsOfJoin() []clientv3.Op {
	if !a.entry.alone() || a.elsewhere() {
		return a.reads()
	}
	return append(a.reads()[:1], a.names.ahead(a.Key, 0)...)
}

// ahead returns the operations that read a claim with the last few claims ahead, and the first
// claim of the queue. rev is the create revision of the claim, 0 if the claim is the last one.
func (n names) ahead(key string, rev int64) []clientv3.Op {
	byAge := func(order clientv3.SortOrder, more ...clientv3.OpOption) clientv3.Op {
		return clientv3.OpGet(n.folder(key), append(more, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, order))...)
	}
	return []clientv3.Op{
		byAge(clientv3.SortDescend, clientv3.WithLimit(few+2), clientv3.WithMaxCreateRev(rev)), // few claims ahead count as a short queue
		byAge(clientv3.SortAscend, clientv3.WithLimit(1)),
	}
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
	return v, v.read(a.Key, r.kvs(1), first)
}

// create returns the operation that creates the claim.
func (a *ask) create(l *lease, phase int64) clientv3.Op {
	a.entry.leaseID, a.entry.Phase = l.id, phase
	a.entry.Client, a.entry.Since, a.entry.TTL = a.Store.id, time.Now().UnixMicro(), a.TTL
	return a.entry.put()
}

// noteLate records that a request to create the claim may still be on its way. The release
// or the cleaner must then write a tomb for the id.
func (a *ask) noteLate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claim.late = true
}

// join creates the claim if it then holds, or if it is to wait in the queue.
// If the queue affects the written value, the write fails after other claims have
// arrived since the read, and join retries. The loop ends, because the other claims
// are in the queue by then.
func (a *ask) join(ctx context.Context, v *view) (mine bool, err error) {
	for !v.hasTomb && v.index(a.ID) < 0 {
		if err := a.avoid(v.queue); err != nil {
			return false, err
		}
		fits := !v.partial() && v.fits(a.Weight, a.Limit) && v.mismatch() < 0
		brief := !fits && a.entry.alone() && !a.elsewhere()
		if !fits && !a.Wait || brief && a.slow(ctx, 3) {
			return false, nil
		}
		t := txn{
			when: []clientv3.Cmp{a.noTomb(), clientv3.Compare(clientv3.CreateRevision(a.entry.name), "=", 0)},
			els:  a.reads(), // whole: a claim with the same name may be anywhere
		}
		claims := v.claims
		if brief {
			t.els[1] = clientv3.OpGet(a.entry.name)
		}
		l := a.lease
		if !fits {
			a.kept = book.Kept(a.Claim, v.claims)
			if a.waiting, err = a.cover(ctx, a.kept, a.began.Add(a.kept)); err != nil {
				return false, err
			}
			if l = a.waiting; brief && a.slow(ctx, 2) {
				return false, nil
			}
		}
		if fits || a.Shared() {
			t.when = append(t.when, v.unchanged(a.names.folder(a.Key)))
		}
		var phase int64
		if last := v.reader(); a.Shared() && last >= 0 && !v.queue[last].Closed && (fits || last == len(v.queue)-1) {
			// If the last reader has left, the phase may have ended, and a writer may
			// have held since. A slot that has held since has written the last reader.
			phase = v.queue[last].phase()
			t.when = append(t.when, v.queue[last].unwritten())
		}
		t.then = append([]clientv3.Op{a.create(l, phase)}, a.readsOfJoin()...)
		r, err := a.do(ctx, t)
		if r.again {
			a.noteLate()
		}
		if err != nil {
			return false, err
		}
		if r.Succeeded {
			r.Responses = r.Responses[1:]
		}
		if *v, err = a.view(r); err != nil {
			return false, newer.Doubtful(err)
		}
		if r.Succeeded {
			a.noteCrowd(v.claims)
		} else if brief {
			v.claims = max(v.claims, claims)
			if i := v.index(a.ID); i >= 0 { // An earlier request has created the claim.
				*v, mine, err = a.lookAgain(ctx, v.queue[i].rev)
				return mine, newer.Doubtful(err)
			}
		}
	}
	return v.index(a.ID) >= 0, nil
}

// slow reports whether more than one part of the call's time is over, of so many parts. To join a
// queue may take two more requests. If etcd is slow, the call returns early that the key is not
// free, so that the caller knows that etcd answers. The caller's next request joins without a look,
// so it needs less time.
func (a *ask) slow(ctx context.Context, parts int64) bool {
	deadline, _ := ctx.Deadline()
	spent := a.now().Sub(a.began)
	return int64(spent) > int64(spent+time.Until(deadline))/parts
}

// agree makes the changes of readers' records that alone keep the claim from holding. agree
// also rewrites the claims of other clients: the first client to notice does the work.
func (a *ask) agree(ctx context.Context, v *view) error {
	for {
		i := v.index(a.ID)
		if i < v.held() || i >= v.fit() {
			return nil
		}
		var t txn
		if first := v.mismatch(); v.queue[first].shared() {
			t = v.shareToken(first, i)
		} else {
			t = v.closePhase(first)
		}
		puts := len(t.then)
		t.then, t.els = append(t.then, a.reads()...), a.reads()
		r, err := a.do(ctx, t)
		if err != nil {
			return err
		}
		if r.Succeeded {
			r.Responses = r.Responses[puts:]
		}
		if *v, err = a.view(r); err != nil {
			return newer.Doubtful(err)
		}
	}
}

// shareToken gives readers with a different token the token of the readers ahead, from the
// first such reader to the claim at index to.
func (v view) shareToken(first, to int) (t txn) {
	last := v.queue[:first].reader()
	t.when = []clientv3.Cmp{v.queue[last].stays()}
	for _, e := range v.queue[first : to+1] {
		if !e.shared() {
			break // The readers behind a slot begin a phase.
		}
		if e.phase() != v.queue[last].phase() {
			e.Phase = v.queue[last].phase()
			t.change(e)
		}
		if len(t.then) == batch/2 {
			break
		}
	}
	return t
}

// closePhase ends the phase of the readers ahead of a slot: the next reader begins a phase
// with a token larger than the slot's.
func (v view) closePhase(slot int) (t txn) {
	for _, e := range v.queue[:slot] {
		if e.shared() && !e.Closed {
			e.Closed = true
			t.change(e)
		}
		if len(t.then) == batch/2 {
			break
		}
	}
	return t
}

// change writes a claim, if the claim is unchanged since the read.
func (t *txn) change(e entry) {
	t.when = append(t.when, e.unwritten())
	t.then = append(t.then, e.put())
}

// avoid gives the claim a new name if the queue already contains its name. A claim that is over
// keeps its name: its removal relies on that.
func (a *ask) avoid(q queue) error {
	if !slices.ContainsFunc(q, func(e entry) bool { return e.name == a.entry.name }) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.claim
	if a.table[a.ID] != c || c.over() {
		return errEnded
	}
	if c.name == a.entry.name {
		a.Store.rename(c)
	}
	a.entry.name = c.name
	return nil
}
