package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

var leaveRules = []rule{
	{
		name:  "leave/stands",
		words: "After a Renew with Leave a claim stands for its TTL from then, though its client is closed.",
		needs: Expiry | Roam,
		check: func(e *env) {
			a, b := e.client(), e.client()
			_, sent := e.left(a, e.short())
			a.close()
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	{
		name:  "leave/longer",
		words: "After a Renew with Leave a claim stands for its TTL from then, also if it had less left.",
		needs: Expiry | Roam,
		check: func(e *env) {
			a, b := e.client(), e.client()
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
	{
		name:  "leave/shortens",
		words: "After a Renew with Leave a claim stands no longer than its TTL from then, however long it was.",
		needs: Expiry | Roam,
		check: func(e *env) {
			a, b := e.client(), e.client()
			_, sent := e.left(a, e.short())
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	{
		name:  "leave/briefly",
		words: "A claim may be left for less than the shortest TTL of the store, since it has stood for a while.",
		needs: Expiry | Roam,
		check: func(e *env) {
			a, b := e.client(), e.client()
			_, sent := e.left(a, 10*time.Microsecond)
			b.lapses(e.exclusive("next"), sent, 10*time.Microsecond)
		},
	},
	{
		name:  "leave/is-the-last",
		words: "A Renew with Leave is the last: a later Renew does not prolong the claim.",
		needs: Expiry | Roam,
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim, sent := e.left(a, e.short())
			a.renew(claim)
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	{
		name:  "leave/of-nothing",
		words: "A Renew with Leave creates nothing, like any other Renew.",
		check: func(e *env) {
			a, b := e.client(), e.client()
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
