package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A parking is a parked claim. A goroutine that locks and unlocks one key in a loop would wait
// in the store's queue for each lock, if other processes do the same. So an Unlock may park the
// claim: the process keeps the claim for MaxPark, and the next call takes the claim over with the
// next token. A turn with parked claims ends after MaxParkedTurn.
//
// A claim is parked only if
//
//   - the claim was refused at first, so other processes want the key, and a later release
//     keeps only processes waiting that are in the store's queue already, and
//   - the process came back within MaxPark after its last claim, too. Work with a pause
//     between two locks would only delay other processes.
//
// A store without a queue may let a claim pass the others, without a refusal. There, a grant
// after a refusal counts for a second.
type parking struct {
	*core
	lease *lease
}

// take makes a hold of the parked claim. take returns nil if the claim is being released, or does
// not serve the request; then the release begins.
func (p parking) take(t *table, r *Request) *Hold {
	l, now := p.lease, p.now()
	if l.released != nil {
		return nil
	}
	if now-l.parkedAt < MaxPark && l.turn.queue.first == nil && l.passable(now) && l.terms() == r.Terms {
		p.busy.Add(1) // of the request
		l.parkedAt = 0
		return p.inherit(t, l, r.Bounds, now)
	}
	l.unpark()
	p.busy.Go(p.release)
	return nil
}

// run releases the claim after MaxPark, and ends when a hold uses the claim.
func (p parking) run() {
	for {
		left, parked := p.look()
		switch {
		case !parked:
			return
		case left <= 0:
			p.release()
			return
		}
		if p.sleep(context.Background(), left) != nil {
			return // Close has released the claim
		}
	}
}

// look returns for how much longer the claim may be parked; at 0, nobody takes the claim over
// any more. look reports false if the claim is not parked.
func (p parking) look() (left time.Duration, parked bool) {
	t := p.lock()
	defer p.unlock()
	l := p.lease
	if l.parkedAt == 0 {
		l.parkRuns = false
		return 0, false
	}
	if left = l.parkedAt + MaxPark - p.now(); left <= 0 {
		t.remember(l.claim().Key, l.contention(l.parkedAt))
		l.unpark()
	}
	return left, true
}

// release ends the claim at the store, and lets the first waiter contend. No caller waits
// for the answer, so the cleaner goes on after an error.
func (p parking) release() {
	l := p.lease
	err := endClaim(p.core, l, time.Now(), p.Store.Release, l.release[:])
	t := p.lock()
	if err != nil && !errors.Is(err, driver.ErrLost) {
		cleaner{p.core}.add(t, driver.Release{Claim: *l.claim(), Late: true})
	}
	t.drop(l)
	close(l.released)
	p.unlock()
}
