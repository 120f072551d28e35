package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// leaveRules are about Renewal.Leave, the renewal with which the core leaves a claim to
// the store. MinHold is built on it.
var leaveRules = []rule{
	// MinHold keeps a key locked after a quick job, so that no replica repeats the job. The
	// process may exit before that time is over.
	{
		name:  "leave/stands",
		words: "After a Renew with Leave, a claim stands for its TTL from then on, even if its client is closed.",
		needs: Expiry | Roam,
		check: func(e *env, a, b *client) {
			_, sent := e.left(a, e.short())
			a.close()
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// MinHold may be longer than the TTL of the lock. A store that only stops renewals frees
	// the key too early.
	{
		name:  "leave/longer",
		words: "After a Renew with Leave, a claim stands for the whole new TTL, even if less was left.",
		needs: Expiry | Roam,
		check: func(e *env, a, b *client) {
			e.undisturbed(func() bool {
				claim := on(e.anotherKey(), lasting(e.exclusive("left"), e.short()))
				asked := now()
				a.granted(claim)
				sent := now()
				if err := a.renewals(leave(lasting(claim, 2*e.short())))[0]; err != nil {
					return e.late(asked, err)
				}
				b.lapses(on(claim.Key, e.exclusive("next")), sent, 2*e.short())
				return true
			})
		},
	},
	// MinHold may be shorter than the rest of the lease. A store that never shortens a lease
	// keeps the next job waiting.
	{
		name:  "leave/shortens",
		words: "After a Renew with Leave, a claim stands no longer than the new TTL, even if more was left.",
		needs: Expiry | Roam,
		check: func(e *env, a, b *client) {
			_, sent := e.left(a, e.short())
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// Most of MinHold has passed when the job ends, so the rest may be microseconds. The
	// minimum of the store is for new claims, which must live until a renewal.
	{
		name:  "leave/briefly",
		words: "A claim may be left for less than the shortest TTL of the store.",
		needs: Expiry | Roam,
		check: func(e *env, a, b *client) {
			_, sent := e.left(a, 10*time.Microsecond)
			b.lapses(e.exclusive("next"), sent, 10*time.Microsecond)
		},
	},
	// A renewal may be in flight when the core leaves the claim. If the renewal arrives
	// last, the claim must still end at the promised time.
	{
		name:  "leave/is-the-last",
		words: "After a Renew with Leave, a later Renew does not prolong the claim.",
		needs: Expiry | Roam,
		check: func(e *env, a, b *client) {
			claim, sent := e.left(a, e.short())
			a.renew(claim)
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// The claim may have expired just before. A claim made by Leave would block a key that
	// no process holds.
	{
		name:  "leave/of-nothing",
		words: "A Renew with Leave creates nothing, like every Renew.",
		check: func(e *env, a, b *client) {
			stranger := e.exclusive("never asked for")
			if err := a.renewals(leave(stranger))[0]; !errors.Is(err, driver.ErrLost) {
				e.failf("Renew of %s with Leave returned %v, not ErrLost", show(stranger), told(err))
			}
			b.granted(e.exclusive("next"))
		},
	},
}

// leave is the last renewal of a claim.
func leave(claim driver.Ask) driver.Renewal {
	return driver.Renewal{Claim: claim.Claim, Leave: true}
}

// left has a client leave a claim for a TTL. left returns the claim, and when the last
// renewal was sent.
func (e *env) left(a *client, ttl time.Duration) (claim driver.Ask, sent time.Time) {
	claim = e.exclusive("left")
	a.granted(claim)
	sent = now()
	a.keeps(leave(lasting(claim, ttl)))
	return claim, sent
}
