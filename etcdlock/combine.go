package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A combiner sends concurrent transactions as one, like the group commit of a database.
// While maxBatches batches are under way, later transactions gather for the next batch. A
// lone transaction goes at once, as a batch of its own. Combining pays because a request
// costs the server and the client more than an uncontended lock.
//
// In etcd a batch is a transaction whose steps are the gathered transactions. etcd compares
// for all steps before the first write, and all writes have one revision. So a batch has at
// most one transaction for each key: a claim must see the earlier claims of its key, and
// must have a larger revision.
type combiner struct {
	client  *clientv3.Client
	ctx     context.Context // ends with the Store
	running *sync.WaitGroup // of the Store

	mu      sync.Mutex
	batches int        // under way
	waiting []*pending // for the next batch
	late    *time.Timer
}

const (
	// maxBatches is a compromise. With fewer, a transaction waits for longer: half the time
	// of a batch with one, a tenth with four. With more, there is less to combine.
	maxBatches = 4

	// maxBatch is how many transactions go into a batch. etcd accepts 128 operations and
	// 1.5 MB; the largest claim has 8 KB.
	maxBatch = 64

	// gatherTime is how long a transaction waits for the next batch, even if no batch under
	// way ends: the members that carry out the batches may hang.
	gatherTime = 20 * time.Millisecond
)

// errAlone is the error of a transaction in a batch that etcd has refused as a whole. Nothing
// was written. Alone, the transaction gets its own answer.
var errAlone = errors.New("the batch was refused")

// A pending is a transaction that may go together with others.
type pending struct {
	txn
	deadline time.Time
	gone     atomic.Bool // the caller has given up
	answer   chan answered
}

// An answered is the answer to a pending.
type answered struct {
	*clientv3.TxnResponse
	err error
}

// commit carries out a transaction, together with concurrent transactions for other keys.
// A transaction without a key goes alone.
func (c *combiner) commit(ctx context.Context, t txn) (*clientv3.TxnResponse, error) {
	if t.key == "" {
		return c.alone(ctx, t)
	}
	p := c.gather(ctx, t)
	if p == nil {
		defer c.endBatch()
		return c.alone(ctx, t)
	}
	select {
	case a := <-p.answer:
		if errors.Is(a.err, errAlone) {
			return c.alone(ctx, t)
		}
		return a.TxnResponse, a.err
	case <-ctx.Done():
		p.gone.Store(true)
		return nil, ctx.Err()
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
}

func (c *combiner) alone(ctx context.Context, t txn) (*clientv3.TxnResponse, error) {
	return c.client.Txn(ctx).If(t.when...).Then(t.then...).Else(t.els...).Commit()
}

// gather adds a transaction to the next batch. If too few batches are under way, gather
// returns nil, and the caller sends the transaction as a batch of its own.
func (c *combiner) gather(ctx context.Context, t txn) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.batches < maxBatches {
		c.batches++
		return nil
	}
	deadline, _ := ctx.Deadline()
	p := &pending{txn: t, deadline: deadline, answer: make(chan answered, 1)}
	if c.waiting = append(c.waiting, p); len(c.waiting) == 1 {
		c.late = time.AfterFunc(gatherTime, c.sendLate)
	}
	return p
}

// endBatch ends a batch, and starts the next batch with the waiting transactions.
func (c *combiner) endBatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.batches--; c.batches < maxBatches {
		c.beginBatchLocked()
	}
}

// sendLate starts a batch with transactions that have waited for gatherTime.
func (c *combiner) sendLate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginBatchLocked()
}

// beginBatchLocked sends the next batch. Transactions whose caller has given up are not
// sent, nor any after the Store has ended. A second transaction for a key waits for the batch
// after.
func (c *combiner) beginBatchLocked() {
	if c.ctx.Err() != nil {
		return
	}
	var some, rest []*pending
	keys := make(map[string]bool)
	for _, p := range c.waiting {
		switch {
		case p.gone.Load():
		case keys[p.key] || len(some) == maxBatch:
			rest = append(rest, p)
		default:
			keys[p.key] = true
			some = append(some, p)
		}
	}
	c.waiting = rest
	if len(rest) > 0 {
		c.late.Reset(gatherTime)
	} else if c.late != nil {
		c.late.Stop()
	}
	if len(some) > 0 {
		c.batches++
		c.running.Go(func() { c.send(some) })
	}
}

// send carries out a batch. The latest deadline of its transactions bounds the batch.
func (c *combiner) send(some []*pending) {
	defer c.endBatch()
	var latest time.Time
	steps := make([]clientv3.Op, len(some))
	for i, p := range some {
		steps[i] = clientv3.OpTxn(p.when, p.then, p.els)
		if p.deadline.After(latest) {
			latest = p.deadline
		}
	}
	ctx, cancel := context.WithDeadline(c.ctx, latest)
	defer cancel()
	r, err := c.client.Txn(ctx).Then(steps...).Else(counted(steps)...).Commit()
	if err != nil && final(err) {
		err = errAlone
	}
	for i, p := range some {
		a := answered{err: err}
		if err == nil {
			step := r.Responses[i].GetResponseTxn()
			a.TxnResponse = &clientv3.TxnResponse{Header: r.Header, Succeeded: step.Succeeded, Responses: step.Responses}
		}
		p.answer <- a
	}
}

// counted returns a write of the steps of a transaction, if there is one. etcd checks the quota
// only for the writes of the transaction itself, not for those of its steps. So the Else, which is
// never carried out, contains a write if a step does.
func counted(steps []clientv3.Op) []clientv3.Op {
	for _, step := range steps {
		_, then, _ := step.Txn()
		if n := slices.IndexFunc(then, clientv3.Op.IsPut); n >= 0 {
			return then[n : n+1]
		}
	}
	return nil
}
