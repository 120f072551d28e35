package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/internal/newer"
)

// eraseBatch is how many claims are erased in one step, each with at most two operations.
const eraseBatch = batch / 2

// erase removes claims whose state in etcd is unknown, and writes the tombs for their ids
// in the same step, unless etcd is full. Many claims need hardly more requests than a
// single claim. There are many when etcd is slow, and a request per claim would make etcd
// slower.
func (s *Store) erase(ctx context.Context, all []*removal) {
	var running sync.WaitGroup
	for some := range slices.Chunk(all, eraseBatch) {
		running.Go(func() { s.eraseTogether(ctx, some) })
	}
	running.Wait()
}

func (s *Store) eraseTogether(ctx context.Context, some []*removal) {
	err := s.seek(ctx, some, true)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		err = s.seek(ctx, some, false) // Requests on their way are refused for the same reason.
	}
	for _, r := range some {
		if !r.over && r.err == nil {
			r.err = err
		}
	}
}

// seek erases claims, with tombs or without, until every claim is over or cannot be read.
// The returned error applies to all remaining claims.
func (s *Store) seek(ctx context.Context, some []*removal, tombs bool) error {
	for {
		views, err := s.readAll(ctx, some)
		if err != nil {
			return err
		}
		var asked []*removal
		var ops []clientv3.Op
		for _, r := range some {
			if slices.ContainsFunc(asked, func(other *removal) bool { return other.ID == r.ID }) {
				continue // until the next round: etcd refuses two writes of a key in a step
			}
			t, err := s.removes(ctx, r, views[s.place(r)], tombs)
			if err != nil {
				return err
			}
			if len(t.then) > 0 {
				asked, ops = append(asked, r), append(ops, clientv3.OpTxn(t.when, t.then, nil))
			}
		}
		if len(ops) == 0 {
			return nil
		}
		a, err := s.do(ctx, txn{then: ops, els: counted(ops)})
		if err != nil {
			return err
		}
		for i, r := range asked {
			r.over = a.Responses[i].GetResponseTxn().Succeeded
			r.tried = r.tried || r.there && a.again
		}
	}
}

// A place is what is read to find a claim: the name of the claim, or the folder of its key.
type place struct {
	key  string
	path string
	all  bool // a folder
}

// place returns where to look for a claim. The cleaner removes claims that this Store has
// created, so it looks at a single name, however long the queue is.
func (s *Store) place(r *removal) place {
	if r.own && r.name != "" {
		return place{key: r.Key, path: r.name}
	}
	return place{key: r.Key, path: s.names.folder(r.Key), all: true}
}

func (p place) read() clientv3.Op {
	if p.all {
		return clientv3.OpGet(p.path, clientv3.WithPrefix())
	}
	return clientv3.OpGet(p.path)
}

// readAll returns what is in the places of open removals.
func (s *Store) readAll(ctx context.Context, some []*removal) (map[place]view, error) {
	var places []place
	var reads []clientv3.Op
	for _, r := range some {
		if p := s.place(r); r.open() && !slices.Contains(places, p) {
			places = append(places, p)
			reads = append(reads, p.read())
		}
	}
	if len(places) == 0 {
		return nil, nil
	}
	a, err := s.do(ctx, txn{then: reads})
	if err != nil {
		return nil, err
	}
	views := make(map[place]view, len(places))
	for i, p := range places {
		q, err := readQueue(p.key, a.kvs(i).Kvs)
		if errors.As(err, new(*newer.Error)) {
			err = nil // The claim to remove is of this release.
		}
		views[p] = view{queue: q, rev: a.Header.Revision}
		for _, r := range some {
			if s.place(r) == p && r.open() {
				r.err = err
			}
		}
	}
	return views, nil
}

func (r *removal) open() bool { return !r.over && r.err == nil }

// removes returns the step that ends a claim, given the queue that was read; an empty
// step if there is nothing to do.
func (s *Store) removes(ctx context.Context, r *removal, v view, tombs bool) (t txn, err error) {
	if !r.open() {
		return t, nil
	}
	i := v.index(r.ID)
	found := i >= 0 && !(r.own && (v.queue[i].Client != s.id || v.queue[i].Left))
	r.there = found || r.tried
	late := r.Late && tombs
	switch {
	case found:
		t.when = []clientv3.Cmp{v.queue[i].unwritten()}
		t.then = []clientv3.Op{clientv3.OpDelete(v.queue[i].name)}
	case late && r.name != "": // The claim may just have arrived.
		t.when = []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(r.name), "<", v.rev+1)}
	case late:
		t.when = []clientv3.Cmp{v.unchanged(s.names.folder(r.Key))}
	default:
		r.over = true
		return t, nil
	}
	if late {
		tomb, err := s.tomb(ctx, r.ID)
		if err != nil {
			return t, err
		}
		t.then = append(t.then, tomb)
	}
	return t, nil
}
