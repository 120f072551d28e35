package engine

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A goroutine that locks and unlocks one key in a loop would wait in the store's queue for
// each lock, if other processes do the same. So an Unlock may park the claim: the process
// keeps the claim for MaxPark, and the next call takes it over with the next token. Such a
// turn of the process ends after MaxParkedTurn.
//
// A claim is parked only if
//
//   - the claim was refused at first, so other processes want the key, and a later release
//     keeps only processes waiting that are waiting in line already, and
//   - the process came back within MaxPark after its last claim, too. Work with a pause
//     between two locks would only delay other processes.
const (
	MaxPark       = 50 * time.Microsecond
	MaxParkedTurn = time.Millisecond
)

// A parking is a parked claim.
type parking struct {
	*core
	lease *lease
}

// takeParked makes a hold of the parked claim of a turn, nil if there is none. A parked claim
// that does not serve the request is given back, because it must not stand in the way of the
// process itself. A request that waits meanwhile stands in the queue. A try looks again: then
// takeParked reports that the turn may have changed.
func (c *core) takeParked(t *table, of *turn, r *Request) (h *Hold, again bool) {
	l := of.parked()
	if l == nil {
		return nil, false
	}
	c.busy.Add(1) // as the caller does for a call
	now := c.now()
	serves := l.passable(now, r.Terms)
	l.unpark(serves)
	if serves {
		return c.inherit(t, l, r.Term, now), false
	}
	giveBack := func() {
		defer c.busy.Done()
		parking{c, l}.giveBack()
	}
	if !r.instant() {
		go giveBack()
		return nil, false
	}
	c.unlock()
	giveBack()
	c.lock()
	return nil, true
}

// run gives the claim back once it has been parked for MaxPark. It ends when a hold uses the
// claim.
func (p parking) run() {
	defer p.busy.Done()
	timer := p.clock.NewTimer(MaxPark)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-p.closing:
			return // Close has given the claim back
		}
		left, parked := p.look()
		switch {
		case !parked:
			return
		case left <= 0:
			p.giveBack()
			return
		}
		timer.Reset(left)
	}
}

// look returns for how much longer the claim may be parked. If that is over, nobody takes the
// claim over any more. It reports false if the claim is not parked.
func (p parking) look() (left time.Duration, parked bool) {
	t := p.lock()
	defer p.unlock()
	l := p.lease
	if l.parkedAt == 0 {
		l.attended = false
		return 0, false
	}
	if left = l.parkedAt + MaxPark - p.now(); left <= 0 {
		t.remember(l.claim().Key, l.parkedAt)
		l.unpark(false)
	}
	return left, true
}

// giveBack ends the claim at the store, and lets the first waiter contend. No caller waits
// for the answer, so the cleaner goes on after an error.
func (p parking) giveBack() {
	l := p.lease
	err := endClaim(l, time.Now(), p.Store.Release, l.release[:])
	t := p.lock()
	if err != nil && !errors.Is(err, driver.ErrLost) {
		l.release[0].Late = true
		cleaner{p.core}.add(t, l.release[0])
	}
	t.drop(l)
	p.unlock()
}
