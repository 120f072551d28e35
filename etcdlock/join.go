package etcdlock

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// create carries out a transaction that may create the claim. After a retry, an earlier attempt may
// still be on its way.
func (a *ask) create(ctx context.Context, t txn) (answer, error) {
	if !a.mayCreate() {
		return answer{}, errEnded
	}
	r, err := a.do(ctx, t)
	if r.again {
		a.noteLate()
	}
	return r, err
}

// mayCreate reports whether the claim has not ended. If the claim ends after that, its removal writes
// a tomb.
func (a *ask) mayCreate() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.table[a.ID] != a.claim || a.claim.over() {
		return false
	}
	a.claim.late = a.claim.late || a.claim.state != asking
	return true
}

// putNew returns the operation that creates the claim.
func (a *ask) putNew(l *lease, phase int64) clientv3.Op {
	a.entry.leaseID, a.entry.Phase = l.id, phase
	a.entry.Client, a.entry.Since, a.entry.TTL = a.Store.id, time.Now().UnixMicro(), a.TTL
	return a.entry.put()
}

// join creates the claim if it then holds, or if it is to wait in the queue.
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
		l := a.lease
		if !fits {
			claims := v.claims
			if a.slow(ctx, 10) { // Many may begin to wait now, and a short lease may end before etcd answers.
				claims = max(claims, far)
			}
			if l, err = a.leaseToWait(ctx, claims); err != nil {
				return false, err
			}
		}
		switch {
		case !brief:
			err = a.joinKnown(ctx, l, v, fits)
		case a.slow(ctx, 2):
			return false, nil
		default:
			err = a.joinUnread(ctx, l, v)
		}
		if err != nil {
			return false, err
		}
	}
	return v.index(a.ID) >= 0, nil
}

// joinKnown tries to create the claim in a queue that was read. If the queue affects the written
// value, the write fails after other claims have arrived since the read. The next try may succeed,
// because the other claims are in the queue by then.
//
// A claim that may have a second name must see all claims to find itself. The core never requests
// a claim over two clients. If a second client did so for a claim in the middle of a long queue, and
// did not read all claims, it would enter the claim again. Both entries would count as separate
// claims, and the second would stay for a few seconds after the release of the first.
func (a *ask) joinKnown(ctx context.Context, l *lease, v *view, fits bool) error {
	when := a.absent()
	if fits || a.Shared() {
		when = append(when, v.unchanged(a.names.folder(a.Key)))
	}
	var phase int64
	if last := v.reader(); a.Shared() && last >= 0 && !v.queue[last].Closed && (fits || last == len(v.queue)-1) {
		// If the last reader has left, the phase may have ended, and a writer may
		// have held since. A slot that has held since has written the last reader.
		phase = v.queue[last].phase()
		when = append(when, v.queue[last].unwritten())
	}
	r, err := a.create(ctx, txn{when: when, then: append([]clientv3.Op{a.putNew(l, phase)}, a.reads()...), els: a.reads()})
	if err != nil {
		return err
	}
	if r.Succeeded {
		r.Responses = r.Responses[1:]
	}
	if *v, err = a.view(r); err == nil && r.Succeeded {
		a.noteCrowd(v.claims)
	}
	return newer.Doubtful(err)
}

// joinUnread queues a claim that waits for the claim just ahead. If each of n clients read the
// queue, n joins would read n²/2 claims. So each such claim also writes its name to a second key,
// one for each queue, and learns the name that was there: the predecessor. The predecessor may have
// left, and claims that have joined by joinKnown may be between. The claim cannot hold before the
// predecessor has left, and then looks at the queue.
func (a *ask) joinUnread(ctx context.Context, l *lease, v *view) error {
	claims, own := v.claims, clientv3.OpGet(a.entry.name)
	r, err := a.create(ctx, txn{
		when: a.absent(),
		then: append([]clientv3.Op{a.putNew(l, 0), a.putLast()}, a.someReads()...),
		els:  append(a.someReads(), own),
	})
	if err != nil {
		return err
	}
	var predecessor entry
	if r.Succeeded {
		if kv := r.Responses[1].GetResponsePut().PrevKv; kv != nil {
			predecessor.name, predecessor.rev = string(kv.Value), kv.ModRevision
		}
		r.Responses = r.Responses[2:]
	}
	if *v, err = a.view(r); err != nil {
		return newer.Doubtful(err)
	}
	i := v.index(a.ID)
	switch {
	case r.Succeeded:
		a.entry.rev, a.entry.mod = v.rev, v.rev
		a.kept = book.Kept(a.Claim, v.claims-1)
		a.noteCrowd(v.claims)
	case i < 0: // Another claim has the name, or the id has a tomb.
		v.claims = max(v.claims, claims)
		return nil
	case i > 0: // An earlier request has created the claim.
		predecessor = v.queue[i-1]
		fallthrough
	default:
		a.entry = v.queue[i]
	}
	switch {
	case !v.partial():
	case predecessor.rev == 0:
		*v, _, err = a.lookAgain(ctx, a.entry.rev)
	default:
		v.queue = queue{unreadEntry(predecessor.name, predecessor.rev), a.entry}
	}
	return newer.Doubtful(err)
}

// absent is the condition that etcd has neither the claim nor its tomb.
func (a *ask) absent() []clientv3.Cmp {
	return []clientv3.Cmp{a.noTomb(), clientv3.Compare(clientv3.CreateRevision(a.entry.name), "=", 0)}
}

// putLast returns the operation that writes which claim was the last to join unread, and reads
// which claim was before.
func (a *ask) putLast() clientv3.Op {
	return clientv3.OpPut(a.names.last(a.Key), a.entry.name, clientv3.WithLease(a.entry.leaseID), clientv3.WithPrevKV())
}

// leaseToWait returns the lease for the place behind so many claims. A place far back that lasts
// for four fifths of the TTL or more is under the lease for holders. Then the process has no second
// lease to keep alive, and the claim needs no write when it holds.
func (a *ask) leaseToWait(ctx context.Context, claims int) (l *lease, err error) {
	a.kept = book.Kept(a.Claim, claims)
	if a.waiting = a.lease; a.kept <= a.Alive() || a.TTL > a.kept*5/4 {
		a.waiting, err = a.cover(ctx, a.kept, a.began.Add(a.kept))
	}
	return a.waiting, err
}

// noteLate records that a request to create the claim may still be on its way. The release
// or the cleaner must then write a tomb for the id.
func (a *ask) noteLate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claim.late = true
}

// slow reports whether more than one part of the call's time is over, of so many parts. To join a
// queue may take two more requests. If etcd is slow, the call returns early that the key is not
// free, so that the caller knows that etcd answers. The caller's next request joins without a look,
// so it needs less time.
func (a *ask) slow(ctx context.Context, parts int64) bool {
	spent := a.now().Sub(a.began)
	return int64(spent) > int64(spent+time.Until(deadline(ctx)))/parts
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
