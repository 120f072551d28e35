package etcdlock

import (
	"context"
	"slices"
	"time"

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

// partial reports whether the queue lacks claims between the first and the last few.
func (v view) partial() bool { return len(v.queue) < v.claims }

// unchanged is the condition that no claim has arrived since.
func (v view) unchanged(folder string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(folder), "<", v.rev+1).WithPrefix()
}

// look reads the queue, and acquires the key in the same step if the queue is empty. It
// reports whether the claim is in the queue.
func (a *ask) look(ctx context.Context, was state) (v view, mine bool, err error) {
	folder := a.names.folder(a.Key)
	if was == waiting {
		return a.lookAtAll(ctx)
	}
	r, err := a.do(ctx, txn{
		key:  a.Key,
		when: []clientv3.Cmp{a.noTomb(), view{}.unchanged(folder)},
		then: []clientv3.Op{a.create(a.lease, 0)},
		els:  a.readsOfJoin(),
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
	v, err = a.view(r)
	if mine = err == nil && v.index(a.ID) >= 0; mine && v.partial() {
		// An earlier request has created the claim, and claims just ahead may not have
		// been read.
		return a.lookAtAll(ctx)
	}
	return v, mine, err
}

// lookAtAll reads the whole queue, and reports whether the claim is in the queue.
func (a *ask) lookAtAll(ctx context.Context) (v view, mine bool, err error) {
	r, err := a.do(ctx, txn{then: a.reads()})
	if err == nil {
		v, err = a.view(r)
	}
	return v, err == nil && v.index(a.ID) >= 0, err
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

// readsOfJoin returns the operations that read what a claim must know of a queue to join. A
// claim that holds beside no other claim waits for the claim just ahead. Of a long queue such
// a claim reads the first claim and the last few: if each of n clients read the whole queue,
// n joins would transfer n²/2 claims.
//
// A claim that may have a second name must see all claims to find itself. The core never requests
// a claim over two clients. If a second client did so for a claim in the middle of a long queue, it
// would not find the claim and would enter it again. Both entries would count as separate claims,
// and the second would stay for a few seconds after the release of the first.
func (a *ask) readsOfJoin() []clientv3.Op {
	if a.Weight < a.Limit || a.elsewhere() {
		return a.reads()
	}
	folder := a.names.folder(a.Key)
	byAge := func(order clientv3.SortOrder, limit int64) clientv3.Op {
		return clientv3.OpGet(folder, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, order), clientv3.WithLimit(limit))
	}
	return []clientv3.Op{
		clientv3.OpGet(a.names.tomb(a.ID), clientv3.WithKeysOnly()),
		byAge(clientv3.SortDescend, few+2), // few claims ahead count as a short queue
		byAge(clientv3.SortAscend, 1),
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
	v.claims = int(r.kvs(1).Count)
	kvs := r.kvs(1).Kvs
	if len(r.Responses) > 2 && len(kvs) < v.claims {
		kvs = append(kvs, r.kvs(2).Kvs...)
	}
	v.queue, err = readQueue(a.Key, kvs)
	return v, err
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
		fits := v.fits(a.Weight, a.Limit) && v.mismatch() < 0
		if !fits && !a.Wait {
			return false, nil
		}
		t := txn{
			when: []clientv3.Cmp{a.noTomb(), clientv3.Compare(clientv3.CreateRevision(a.entry.name), "=", 0)},
			els:  a.reads(), // whole: a claim with the same name may be anywhere
		}
		l := a.lease
		if !fits {
			a.kept = book.Kept(a.Claim, v.claims)
			if a.waiting, err = a.cover(ctx, a.kept, a.began.Add(a.kept)); err != nil {
				return false, err
			}
			l = a.waiting
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
	}
	return v.index(a.ID) >= 0, nil
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
