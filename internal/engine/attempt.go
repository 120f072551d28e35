package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// An attempt is what a call asks of the store, and what the store has answered, from the first
// request of the call to the last.
type attempt struct {
	*core
	Request
	ctx   context.Context
	began time.Duration // if a limit or a hook needs that

	reader   *Hold // to upgrade; nil for a call of Lock
	turn     *turn
	lease    *lease // the requested lease
	contends bool   // on behalf of the queue of the turn
	likely   bool   // a refusal is likely

	answered   bool          // the store has answered
	answeredAt time.Duration // when the last answered Acquire was sent, or the first; before, the constant never
	refusal    *Refusal      // nil until refused
	seen       time.Duration // of an upgrade: when the store's queue was last seen, or the call began
	failure    error         // of the last Acquire; nil if the store answered
}

// upgrades reports whether the call is one of Upgrade.
func (a *attempt) upgrades() bool { return a.reader != nil }

// request makes the lease that is to be requested. back says that the call has begun just now,
// not behind others in the queue. request looks whether other processes are likely to hold the
// key, and whether the process has come back at once.
func (a *attempt) request(t *table, back bool) {
	a.lease = t.lease(a.turn, a.Terms, a.Owner)
	if len(t.contended) > 0 {
		now := a.now()
		last, ok := t.recall(a.Key, now)
		a.likely = ok && last.refused // else this claim may pass the others, too
		if ok && back && now-last.left <= MaxPark {
			a.lease.cameBack, a.lease.wanted = true, last.wanted
		}
	}
	a.lease.span = a.span()
}

// span is how many tokens a grant should carry: more than one only if a call waits in
// the queue, or may take over a parked claim, since every token costs the store's clock a
// microsecond.
func (a *attempt) span() int {
	if a.Exclusive() && !a.NoRenew && (a.turn.queue.first != nil || a.lease.cameBack) {
		return driver.MaxSpan
	}
	return 1
}

// acquire sends one Acquire and records the answer.
func (a *attempt) acquire(wait bool) (driver.Grant, time.Duration, error) {
	now := time.Now()
	sent := a.clock.At(now)
	ctx, bound := a.context(a.ctx, a.lease, now.Add(a.askLimit(sent)))
	defer bound.End()
	if a.answeredAt == never {
		a.answeredAt = sent
	}
	g, err := a.Store.Acquire(ctx, driver.Ask{Claim: *a.lease.claim(), Wait: wait, Span: a.lease.span})
	a.lease.noteAnswer(sent, wait, g, err)
	if err != nil {
		err = a.failed(err)
	} else {
		a.failure = nil
	}
	if !g.OK && a.Hooks.Tried != nil {
		why := err
		if why == nil {
			why = a.Words.Held(refusalOf(g))
		}
		a.report(a.Hooks.Tried, why)
	}
	return g, sent, err
}

// askLimit is how long one call to the store may take, from now.
func (a *attempt) askLimit(now time.Duration) time.Duration {
	if !a.Limited || a.Wait == 0 {
		return callLimit(a.TTL)
	}
	return max(min(callLimit(a.TTL), a.began+a.Wait-now), 0)
}

// failed records the error of an Acquire, and returns the error for the caller. If the
// caller has cut the call short, by the context or by Wait, the store's previous answer
// says more about the store than this error. So failed then records this error only if it
// says more than that the call was cut short.
func (a *attempt) failed(err error) error {
	now, ended := a.now(), silence.Ended(a.ctx)
	known := a.failure != nil || a.refusal != nil
	short := ended != nil || known && a.Limited && now >= a.began+a.Wait
	if !short || silence.Words(err) != "" {
		a.failure = silence.Of(err, now-a.answeredAt)
	}
	if ended == nil || errors.Is(err, driver.ErrInvalid) {
		return a.failure
	}
	return silence.Cut(ended, a.failure)
}

// longestSilence is how long a store that has never answered may fail. It is longer than
// it takes to open a connection, or to fail over from a dead server.
const longestSilence = 3 * time.Second

// hopeless reports whether the store has failed for too long, or for good.
func (a *attempt) hopeless(now time.Duration, failed error) bool {
	patience := min(a.TTL, longestSilence)
	if a.answered {
		patience = a.TTL
	}
	return errors.Is(failed, driver.ErrInvalid) || now-a.answeredAt > patience
}

// endOfWait is the error of a wait that ends here, because of cause; nil stands for Wait.
func (a *attempt) endOfWait(cause error) error { return a.explain(cause, a.refusal, a.failure) }

// maxLate is how many grants in a row may come too late to be of use.
const maxLate = 3

// least is the time that a caller must find in a new hold: half of the TTL. A pushed grant
// is short until it is confirmed, so a second is enough.
func (a *attempt) least(g driver.Grant) time.Duration {
	if g.TTL < a.TTL {
		return min(a.TTL/2, time.Second)
	}
	return g.TTL / 2
}

// take makes a hold of a grant. It returns neither hold nor error if the grant is too old or
// already lost: then the call must ask again.
func (a *attempt) take(g driver.Grant, sent time.Duration) (*Hold, error) {
	l := a.lease
	now := sent // A pause in a local call is like a pause after the call.
	if !a.local {
		now = a.now()
	}
	l.grant(g, sent, now)
	if left, _ := l.remaining(now); left < a.least(g) {
		return nil, nil
	}
	if a.Fenced && g.Fence == 0 {
		a.leave()
		return nil, ErrNotFenced
	}
	if a.upgrades() {
		a.reader.check()
	}
	t := a.lock()
	defer a.unlock()
	if a.replaceLost(t) != nil {
		return nil, nil
	}
	if a.closed.Load() {
		a.end(t)
		return nil, ErrClosed
	}
	if a.upgrades() && a.reader.Ended() != nil {
		a.end(t)
		return nil, a.reader.Ended()
	}
	l.noteRivals(a.refusal != nil && !a.refusal.Here, g.Passed)
	a.turn.end(a.Terms)
	a.turn.admit(l)
	h := newHold(a.core, l, a.Bounds, now)
	if a.upgrades() {
		h.reader = a.reader
		a.reader.upgrade.Store(h)
	}
	renewer{a.core}.add(t, l, now)
	if a.contends {
		a.turn.retire()
		t.callNext(a.turn)
	}
	return h, nil
}

// leave ends the request, releases in the background what the store may keep of the
// claim, and lets the next waiter try.
func (a *attempt) leave() {
	a.end(a.lock())
	a.unlock()
}

func (a *attempt) end(t *table) {
	a.discard(t)
	a.turn.end(a.Terms)
	if a.contends {
		a.turn.retire()
	}
	t.callNext(a.turn)
}

// discard releases, in the background, what the store may keep of the claim.
func (a *attempt) discard(t *table) {
	if a.lease.known() {
		cleaner{a.core}.add(t, a.lease.release[0])
	}
	a.lease.move(over)
}

// replaceLost gives the lease a new claim if the store has reported the loss of the old claim,
// and returns the loss; nil without a loss. The old claim is released all the same: an Acquire
// that was in flight may have been granted since.
func (a *attempt) replaceLost(t *table) error {
	l := a.lease
	lost := a.turn.early[l.claim().ID]
	if lost == nil {
		return nil
	}
	delete(a.turn.early, l.claim().ID)
	cleaner{a.core}.add(t, l.release[0])
	l.claim().ID = t.newID()
	l.move(fresh)
	l.silentSince, l.release[0].Late = 0, false
	return lost
}

// event is an event of the call.
func (a *attempt) event() Event { return Event{Context: a.ctx, Key: a.Key} }

// report reports how long the call has waited so far, and for an error what has gone wrong.
func (a *attempt) report(hook func(Event), err error) {
	if hook == nil {
		return
	}
	e := a.event()
	e.Waited, e.Err = a.now()-a.began, err
	hook(e)
}
