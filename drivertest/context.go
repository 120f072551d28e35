package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// overs are ended contexts, by the way in which the context ended.
func overs() map[string]context.Context {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	cancel()
	return map[string]context.Context{"cancelled": cancelled, "past its deadline": late}
}

// inTime runs a call whose context has ended, and fails if the call takes long all the
// same.
func (e *env) inTime(call string, f func()) {
	start := now()
	f()
	if took := time.Since(start); took > patience || e.harness.Bubble && took > 0 {
		e.failf("%s took %v though its context had ended", call, took)
	}
}

// contextRules are about calls whose context ends: before the call, or in the middle of
// it.
var contextRules = []rule{
	// A caller that left gets its error immediately. ErrUnwritten spares the core a release,
	// so the promise must be exact: a claim that arrives later would block the key.
	{
		name:  "context/acquire",
		words: "An Acquire whose context has ended returns at once. The Acquire blocks the key for its TTL at most, or not at all after ErrUnwritten.",
		check: func(e *env, a, b *client) {
			for how, ctx := range overs() {
				claim := on(e.anotherKey(), waiting(lasting(e.exclusive("ended context"), e.short())))
				var grant driver.Grant
				var err error
				e.inTime("Acquire", func() { grant, err = a.store.Acquire(ctx, claim) })
				if errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) || err != nil && grant.OK {
					e.failf("with a context %s, Acquire returned %s and %v", how, brief(grant), told(err))
				}
				if err == nil {
					a.granted(claim) // A store that needs no context may have granted the claim.
				}
				next := on(claim.Key, e.exclusive("next"))
				if errors.Is(err, driver.ErrUnwritten) {
					b.granted(next)
					continue
				}
				b.eventually(next, e.short())
			}
		},
	},
	// ErrLost is certain, and ends the lock of the caller. A store that maps its own
	// cancelled call to ErrLost takes a lock away for nothing.
	{
		name:  "context/renew",
		words: "A Renew whose context has ended returns at once, and never reports a live claim as lost.",
		check: func(e *env, a, _ *client) {
			claim := a.takes("holder")
			for how, ctx := range overs() {
				var errs []error
				rs := []driver.Renewal{{Claim: claim.Claim}, {Claim: e.exclusive("stranger").Claim}}
				e.inTime("Renew", func() { errs = a.perClaim("Renew", 2, a.store.Renew(ctx, rs)) })
				if errors.Is(errs[0], driver.ErrLost) {
					e.failf("with a context %s, Renew of %s returned %v", how, show(claim), told(errs[0]))
				}
				if errs[1] == nil {
					e.failf("with a context %s, Renew of a claim that never was returned nil", how)
				}
				a.kept(claim)
			}
		},
	},
	// The core repeats a release of unknown outcome. A wrong nil or a wrong ErrLost ends the
	// repeats, and the claim blocks the key for its TTL.
	{
		name:  "context/release",
		words: "A Release whose context has ended returns at once: with nil only if the Release ended the claim, with ErrLost only if there was no claim.",
		check: func(e *env, a, b *client) {
			for how, ctx := range overs() {
				claim := on(e.anotherKey(), e.exclusive("holder"))
				a.granted(claim)
				var err error
				rs := []driver.Release{{Claim: claim.Claim}}
				e.inTime("Release", func() { err = a.perClaim("Release", 1, a.store.Release(ctx, rs))[0] })
				if errors.Is(err, driver.ErrLost) {
					e.failf("with a context %s, Release of %s returned %v", how, show(claim), told(err))
				}
				if err != nil {
					a.release(claim) // The outcome was unknown: the core asks again.
				}
				b.granted(on(claim.Key, e.exclusive("next")))
			}
		},
	},
	// The core meets every outcome of a call cut in the middle by repeating the call, or by
	// a Release with Late. The rule cuts calls at random points and expects a free key
	// afterwards.
	{
		name:  "context/cut-short",
		words: "An Acquire or a Release of unknown outcome can be repeated, and such an Acquire can be released.",
		check: cutShort,
	},
	// The core cancels the context as soon as a call has returned. A store that binds a
	// session, a lease or a transaction to the context loses the claim then.
	{
		name:  "context/of-the-call-only",
		words: "A claim does not end with the context of the call that made it.",
		check: func(e *env, a, b *client) {
			claim := e.exclusive("holder")
			ctx, cancel := e.bounded()
			grant, err := a.store.Acquire(ctx, claim)
			cancel()
			if err != nil || !grant.OK {
				e.failf("Acquire returned %s and %v", brief(grant), told(err))
			}
			b.refused(e.exclusive("other"))
			a.kept(claim)
			b.refused(e.exclusive("other"))
		},
	},
}

// cutShort ends contexts while calls are on their way: every call has less time than the
// second call took: the first may also prove the store.
func cutShort(e *env, a, b *client) {
	a.granted(on(e.anotherKey(), e.exclusive("first")))
	start := now()
	a.granted(on(e.anotherKey(), e.exclusive("second")))
	took := time.Since(start)
	rounds := e.rounds(20)
	for i := range rounds {
		brief := func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), took*time.Duration(i)/time.Duration(rounds))
		}
		claim := on(e.key, lasting(e.exclusive("cut short"), max(time.Second, e.short())))
		a.given(claim.Claim, now()) // as far as the rule knows
		ctx, cancel := brief()
		_, _ = a.store.Acquire(ctx, claim)
		cancel()
		if i%2 == 0 {
			a.granted(claim)
			ctx, cancel = brief()
			a.store.Release(ctx, []driver.Release{late(claim)})
			cancel()
		}
		a.settle(late(claim))
		next := e.exclusive("next")
		if e.has(Tombstones) {
			b.granted(next)
		} else {
			b.eventually(next, claim.TTL)
		}
		b.ended(next)
	}
}
