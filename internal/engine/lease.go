package engine

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// A life is where a claim is between its first request and its end.
type life uint8

const (
	fresh      life = iota // the store does not know the claim
	unanswered             // a request was not answered: the store may know the claim
	queued                 // refused; the store may keep a place in its queue
	granted                // the store has granted the claim, and no hold uses it yet
	pushed                 // granted by a push, for a short time, and no hold uses it yet
	brief                  // held on a push that no renewal has confirmed yet
	held                   // held
	reported               // held, and the store has reported the loss: not to be handed over
	over                   // released, lost or dropped
)

// moves says where a life may go from each state.
var moves = [...][]life{
	fresh:      {unanswered, queued, granted, over},
	unanswered: {fresh, queued, granted, pushed, over},
	queued:     {fresh, unanswered, granted, pushed, over},
	granted:    {fresh, unanswered, queued, pushed, held, over},
	pushed:     {fresh, unanswered, queued, granted, brief, over},
	brief:      {held, reported, over},
	held:       {reported, over},
	reported:   {over},
	over:       {},
}

// A lease is a claim as this process sees it, from the first request until the store has
// forgotten the claim. A lease outlives a hold if the claim is handed over to the next
// waiter of the process. The fields belong to the requesting goroutine until the lease is
// admitted to its turn, and then to the holder of the table, unless noted otherwise. The
// claim and Late do not change after that, nor fence and ctx while a hold uses the lease.
type lease struct {
	turn    *turn
	noRenew bool
	life    life

	// The claim, as it is released: Late if a request was not answered, and may still
	// arrive. An array, because stores take slices.
	release [1]driver.Release

	span        int           // tokens to ask for
	silentSince time.Duration // since when no request was answered; 0 if the last one was
	ttl         time.Duration // as granted; 0: no end
	fence       uint64        // token of the present hold
	spare       int           // tokens left for hand-overs
	arrived     time.Duration // when the grant arrived
	failure     error         // of the last renewal; nil after a success

	warned   bool            // a call of this engine has reported that it waits for the present hold
	wanted   time.Duration   // when other processes were last known to want the key; 0: not known
	refused  bool            // at first, for other processes
	cameBack bool            // the process came back within MaxPark after its last claim
	parkRuns bool            // parking.run runs
	parkedAt time.Duration   // 0 if the claim is not parked
	released chan struct{}   // closed after the release of the parked claim; nil before it begins
	ctx      context.Context // of the present hold's call, if hooks need it

	// deadline is when the hold is lost if no renewal succeeds from now on; the constant never
	// without an end. Reading deadline needs no table.
	deadline atomic.Int64

	// The hold that uses the lease. The pointer is weak from the first renewal on, so that
	// the renewer notices a dropped hold; the many holds that end sooner pay nothing for
	// that. The pointer is strong before, and as long as somebody waits for the end of the
	// hold, who need not keep the hold itself.
	hold *Hold
	weak weak.Pointer[Hold]

	entry // in the agenda

	// The contexts of the next calls. A claim mostly has a request and a release, so one
	// allocation is for two. The contexts belong to the call that requests or ends the claim.
	contexts []bounded.Context
}

// context returns the context of one call to the store.
func (l *lease) context(parent context.Context, limit time.Time) *bounded.Context {
	if len(l.contexts) == 0 {
		l.contexts = make([]bounded.Context, 2)
	}
	ctx := &l.contexts[0]
	l.contexts = l.contexts[1:]
	return ctx.Start(parent, limit)
}

func (l *lease) claim() *driver.Claim { return &l.release[0].Claim }

// move changes the life of the claim. It reports false, and changes nothing, if the life
// cannot go there: news that come too late, such as a loss after the end, are no news.
func (l *lease) move(to life) bool {
	if !slices.Contains(moves[l.life], to) {
		return false
	}
	l.life = to
	return true
}

// noteAnswer records the answer to a request that was sent at that time.
func (l *lease) noteAnswer(sent time.Duration, wait bool, g driver.Grant, err error) {
	switch {
	case errors.Is(err, driver.ErrUnwritten):
	case err != nil:
		l.release[0].Late = true
		l.move(unanswered)
	case g.OK:
		l.move(granted)
	case wait:
		l.move(queued)
	case !l.release[0].Late: // a single try leaves nothing behind
		l.move(fresh)
	}
	switch {
	case err == nil:
		l.silentSince = 0
	case l.silentSince == 0:
		l.silentSince = max(sent, 1)
	}
}

// known reports whether the store may know the claim, so that it must be released.
func (l *lease) known() bool { return l.life != fresh && l.life != over }

// silent reports whether the store has not answered for longer than the claim keeps a
// place in the store's queue.
func (l *lease) silent(now time.Duration) bool {
	return l.silentSince > 0 && now-l.silentSince > l.claim().Alive()
}

// grant records a grant that has just arrived. Its TTL counts from sent.
func (l *lease) grant(g driver.Grant, sent, now time.Duration) {
	l.fence, l.spare = g.Fence, max(g.Span-1, 0)
	l.ttl, l.arrived = g.TTL, now
	if g.TTL < 0 {
		l.ttl = 1 // expired before it arrived, because the store's clock was set
	}
	l.extend(sent)
}

// confirm records a successful renewal that was sent at that time.
func (l *lease) confirm(sent time.Duration) {
	if l.life == brief {
		l.ttl = l.claim().TTL
		l.move(held)
	}
	l.extend(sent)
}

// extend lets the lease stand for its TTL from sent.
func (l *lease) extend(sent time.Duration) {
	if l.ttl == 0 {
		l.due = sent + l.claim().TTL // nothing to renew, but the hold may be dropped
		l.deadline.Store(int64(never))
		l.risk = never
		return
	}
	l.deadline.Store(int64(sent + l.ttl - margin(l.ttl)))
	l.due = sent + l.ttl/3 - l.ttl/30 + rand.N(max(l.ttl/15, 1))
	l.open = l.due - l.ttl/10
	l.risk = sent + l.ttl/2
	l.backoff, l.failure = 0, nil
}

// margin is kept back from a TTL, because clocks run at slightly different rates and
// timers are late.
func margin(ttl time.Duration) time.Duration { return max(ttl/100, 10*time.Millisecond) }

// renews reports whether the lease is to be renewed.
func (l *lease) renews() bool { return !l.noRenew || l.life == brief }

// remaining is the time until the deadline; false, and a very long time, if the lease has no
// deadline.
func (l *lease) remaining(now time.Duration) (time.Duration, bool) {
	d := time.Duration(l.deadline.Load())
	return d - now, d != never
}

// holder returns the hold that uses the lease, nil if the hold was dropped.
func (l *lease) holder() *Hold {
	if l.hold != nil {
		return l.hold
	}
	return l.weak.Value()
}

// use makes h the hold that uses the lease.
func (l *lease) use(h *Hold) { l.hold, l.weak, l.warned = h, weak.Pointer[Hold]{}, false }

// weaken lets a hold that its owner drops be collected.
func (l *lease) weaken() {
	if l.hold == nil || l.hold.done != nil {
		return
	}
	l.hold.bonds.forgetEnded()
	if l.hold.bonds.last == nil {
		l.weak, l.hold = weak.Make(l.hold), nil
	}
}

// strengthen reverts weaken, because somebody is going to wait for the end of the hold.
func (l *lease) strengthen(h *Hold) {
	if l.holder() == h {
		l.hold = h
	}
}

// began is when the present hold was granted.
func (l *lease) began() time.Duration {
	if h := l.holder(); h != nil {
		return h.since
	}
	return l.arrived
}

// MaxTurn is how long the process may hand one claim over from hold to hold while other
// processes may be waiting for the key.
const MaxTurn = 20 * time.Millisecond

// terms are the terms of the claim.
func (l *lease) terms() Terms {
	c := l.claim()
	return Terms{Weight: c.Weight, Limit: c.Limit, TTL: c.TTL, NoRenew: l.noRenew, Note: c.Note}
}

// unpark ends the parking, because the claim is about to be released.
func (l *lease) unpark() {
	l.parkedAt, l.released = 0, make(chan struct{})
	l.move(over)
}

// The limits of a parked claim, see parking.go.
const (
	MaxPark       = 50 * time.Microsecond
	MaxParkedTurn = time.Millisecond
)

// noteRivals records whether other processes want the key: they do after a refusal, and may
// for a second after that if the claim may have passed them.
func (l *lease) noteRivals(refused, passed bool) {
	l.refused = refused
	switch {
	case refused:
		l.wanted = max(l.arrived, 1)
	case !passed || l.arrived-l.wanted >= longContended:
		l.wanted = 0
	}
}

// A contention is the last claim of the process on a key that other processes want.
type contention struct {
	wanted  time.Duration // as in lease
	refused bool          // as in lease
	left    time.Duration // when the process released the claim
}

// longContended is how long a key counts as contended.
const longContended = time.Second

// contention is what the process remembers of a claim that it releases at that time.
func (l *lease) contention(left time.Duration) contention {
	return contention{l.wanted, l.refused, left}
}

// parkable reports whether an Unlock may park the claim.
func (l *lease) parkable(now time.Duration) bool {
	return l.wanted > 0 && l.cameBack && l.round == nil && now-l.arrived < MaxParkedTurn && l.passable(now)
}

// passable reports whether the claim may go to a call of this process that wants the same terms.
// The claim must be exclusive, and valid for at least another half of its TTL.
func (l *lease) passable(now time.Duration) bool {
	if l.life != brief && l.life != held || l.noRenew || l.spare == 0 || now-l.arrived >= MaxTurn {
		return false
	}
	left, _ := l.remaining(now)
	return l.claim().Exclusive() && left >= l.ttl/2
}
