package etcdlock

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/internal/newer"
)

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
