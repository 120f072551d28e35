package drivertest

import (
	"time"
)

var renewRules = []rule{
	{
		name:  "renew/keeps",
		words: "Renew lets a claim stand for its TTL from then on.",
		needs: Expiry,
		check: renewing,
	},
	{
		name:  "renew/longer",
		words: "Renew gives the TTL that the renewal names, also if it is longer than before.",
		needs: Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			e.undisturbed(func() bool {
				key := e.anotherKey()
				claim := on(key, lasting(e.exclusive("renewed"), e.short()))
				asked := now()
				a.granted(claim)
				sent := now()
				claim.TTL = 3 * e.short()
				if err := a.renew(claim)[0]; err != nil {
					return e.late(asked, err)
				}
				b.lapses(on(key, e.exclusive("next")), sent, claim.TTL)
				return true
			})
		},
	},
	{
		name:  "renew/shorter",
		words: "Renew gives the TTL that the renewal names, also if it is shorter than before.",
		needs: Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim := e.exclusive("shortened")
			a.granted(claim)
			sent := now()
			a.kept(lasting(claim, e.short()))
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	{
		name:  "renew/creates-nothing",
		words: "Renew of a claim that nobody was granted says that it is lost, and creates nothing.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			stranger := e.exclusive("never asked for")
			a.lost(stranger)
			holder := e.exclusive("holder")
			b.granted(holder)
			b.ended(holder)
			a.nothing(stranger)
		},
	},
	{
		name:  "renew/queues-nothing",
		words: "Renew never queues a claim.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			holder, stranger := e.exclusive("holder"), waiting(e.exclusive("never asked for"))
			a.granted(holder)
			b.lost(stranger)
			a.ended(holder)
			a.granted(e.exclusive("next"))
			b.lost(stranger)
			b.nothing(stranger)
		},
	},
	{
		name:  "renew/of-waiting",
		words: "Renew of a claim that still waits does not say that it is held.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			holder, waiter := e.exclusive("holder"), waiting(e.exclusive("waiter"))
			a.granted(holder)
			b.refused(waiter)
			if err := b.renew(waiter)[0]; err == nil {
				e.failf("Renew of %s returned nil while %s held the key", show(waiter), show(holder))
			}
			a.kept(holder)
		},
	},
	{
		name:  "renew/revives-nothing",
		words: "Renew never brings back a claim that ran out, whether its key was taken since or not.",
		needs: Expiry,
		check: revives,
	},
	{
		name:  "renew/after-release",
		words: "Renew never brings back a claim that was released.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim, next := e.exclusive("released"), e.exclusive("next")
			a.granted(claim)
			a.ended(claim)
			a.lost(claim)
			b.granted(next)
			a.lost(claim)
			b.kept(next)
		},
	},
	{
		name:  "renew/only-the-owner",
		words: "Renew of one claim does nothing for another on the same key.",
		needs: Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			sent := now()
			holder := lasting(e.exclusive("holder"), e.short())
			a.granted(holder)
			b.lost(e.exclusive("stranger"))
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	{
		name:  "renew/keeps-the-fence",
		words: "A renewed claim keeps its fencing token.",
		check: func(e *env) {
			a := e.client()
			claim := e.exclusive("renewed")
			before := a.granted(claim).Fence
			a.kept(claim)
			if after := a.granted(claim).Fence; after != before {
				e.failf("token %d before Renew, %d after it", before, after)
			}
		},
	},
}

func renewing(e *env) {
	a, b := e.client(), e.client()
	e.undisturbed(func() bool {
		claim := on(e.anotherKey(), lasting(e.exclusive("renewed"), e.short()))
		sent := now()
		a.granted(claim)
		for range 5 {
			<-time.After(e.short() / 3)
			before := sent
			sent = now()
			if err := a.renew(claim)[0]; err != nil {
				return e.late(before, err)
			}
		}
		b.lapses(on(claim.Key, e.exclusive("next")), sent, e.short())
		return true
	})
}

// late judges the error of a Renew. If the last request that let the claim stand was sent
// less than a TTL ago, the store is at fault. Otherwise this machine was too slow, and the
// steps must be repeated.
func (e *env) late(sent time.Time, err error) (inTime bool) {
	if since := time.Since(sent); since < e.short()-e.slack() {
		e.failf("Renew returned %v only %v after the claim was given %v", told(err), since, e.short())
	}
	return false
}

func revives(e *env) {
	a, b := e.client(), e.client()
	claim, next := lasting(e.exclusive("run out"), e.short()), e.exclusive("next")
	sent := now()
	a.granted(claim)
	if e.harness.Bubble {
		// Only in a bubble is it certain when the claim has expired.
		untouched := on(e.key+"/untouched", lasting(e.exclusive("run out, nobody came"), e.short()))
		a.granted(untouched)
		<-time.After(e.short())
		a.lost(untouched)
		b.granted(on(untouched.Key, next))
	}
	b.lapses(next, sent, e.short())
	a.lost(claim)
	b.kept(next)
	b.ended(next)
	a.lost(claim)
	b.granted(e.exclusive("after both"))
}
