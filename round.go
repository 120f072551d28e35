package holdfast

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A round is one call that renews a batch of claims.
type round struct {
	lk      *Locker
	leases  []*lease
	limit   time.Duration // for the call
	started bool          // guarded by Locker.mu
	done    chan struct{}
}

func (r *round) run() {
	defer r.lk.busy.Done()
	defer close(r.done)
	r.lk.renewer.rounds <- struct{}{}
	defer func() { <-r.lk.renewer.rounds }()
	claims, limit := r.start()
	if len(claims) == 0 {
		return
	}
	sent := r.lk.now()
	errs := r.lk.renew(claims, limit)
	lost, renewed := r.finish(sent, errs)
	for _, l := range lost {
		l.lock.lose(l.why)
	}
	for _, e := range renewed {
		emit(r.lk.opts.Trace.Renewed, e)
	}
}

// start drops the leases that have ended since, and returns the limit of the call: at
// most the time until the earliest deadline of the batch.
func (r *round) start() ([]driver.Claim, time.Duration) {
	r.lk.mu.Lock()
	defer r.lk.mu.Unlock()
	r.started = true
	now, limit := r.lk.now(), r.limit
	kept := r.leases[:0]
	claims := make([]driver.Claim, 0, len(r.leases))
	for _, l := range r.leases {
		if l.round != r || l.index == 0 {
			l.round = nil
			continue
		}
		kept = append(kept, l)
		claims = append(claims, *l.claim())
		left, _ := l.remaining(now)
		limit = min(limit, left)
	}
	r.leases = kept
	return claims, limit
}

// renew makes one call to the store.
func (lk *Locker) renew(claims []driver.Claim, limit time.Duration) []error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return answers(len(claims), lk.store.Renew(ctx, claims))
}

// finish records the answers. It returns the lost locks and, if the Trace has Renewed, the
// events for it.
func (r *round) finish(sent time.Duration, errs []error) (lost []loss, renewed []Event) {
	lk := r.lk
	lk.mu.Lock()
	defer lk.mu.Unlock()
	for i, l := range r.leases {
		l.round = nil
		var err error
		if errs != nil {
			err = errs[i]
		}
		switch {
		case err == nil:
			if l.unconfirmed {
				l.ttl, l.unconfirmed = l.claim().TTL, false
			}
			l.extend(sent)
			if lock := l.holder(); lock != nil && lk.opts.Trace.Renewed != nil {
				renewed = append(renewed, lock.event())
			}
		case errors.Is(err, driver.ErrLost):
			l.spare = 0 // An Unlock that comes first must not hand the lease over.
			if lock := l.holder(); lock != nil {
				lost = append(lost, loss{lock, lossOf(err)})
			}
			continue
		default:
			l.failure = silence.Of(err, lk.now()-sent)
			l.backoff = min(max(2*l.backoff, firstTrouble), callLimit(l.ttl))
			l.due = lk.now() + jitter(l.backoff)
			l.open = l.due
		}
		if l.index > 0 {
			l.schedule()
			heap.Fix(&lk.renewer.leases, l.index-1)
			lk.renewer.hurry(l.next)
		}
	}
	return lost, renewed
}

// awaitRound waits for a renewal of the lease that is in flight, so that it cannot reach
// the store after the release. If the store hangs, awaitRound waits only for as long as a
// call may take: a late renewal does no harm, because a renewal revives nothing.
func (l *lease) awaitRound() {
	l.lk.mu.Lock()
	r := l.round
	if r != nil && !r.started {
		l.round, r = nil, nil
	}
	l.lk.mu.Unlock()
	if r == nil {
		return
	}
	timer := l.lk.clock.NewTimer(callLimit(l.claim().TTL))
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	}
}
