package drivertest

import "github.com/holdfast-go/holdfast/driver"

var closeRules = []rule{
	{
		name:  "close/leaves-claims",
		words: "Close leaves claims alone: they stand until their TTL ends.",
		needs: Outlive | Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			sent := now()
			a.granted(lasting(e.exclusive("of a closed client"), e.short()))
			a.close()
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	{
		name:  "close/ends-claims",
		words: "Where claims cannot outlive their client, Close ends them, however long their TTL.",
		when:  func(h Harness) bool { return h.Lacks&Outlive != 0 },
		check: func(e *env) {
			a, b := e.client(), e.client()
			a.granted(e.exclusive("of a closed client"))
			a.close()
			b.eventually(e.exclusive("next"), e.short())
		},
	},
	{
		name:  "close/while-called",
		words: "A client may be closed while it holds claims and is being called: every call ends.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			a.granted(e.exclusive("holder"))
			call := func() {
				claim := on(e.anotherKey(), e.exclusive("caller"))
				for range e.rounds(10) {
					ctx, cancel := e.bounded()
					_, _ = a.store.Acquire(ctx, claim)
					a.store.Renew(ctx, []driver.Renewal{{Claim: claim.Claim}})
					a.store.Release(ctx, []driver.Release{{Claim: claim.Claim}})
					if ctx.Err() != nil {
						e.failf("three calls to a closed client did not end within %v", patience)
					}
					cancel()
				}
			}
			e.together(call, call, a.close, call, call)
			b.granted(on(e.anotherKey(), e.exclusive("of another client")))
		},
	},
	{
		name:  "close/one-client",
		words: "Close of one client does nothing to another.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim := e.exclusive("of the other client")
			b.granted(claim)
			a.close()
			b.kept(claim)
			e.client().refused(e.exclusive("of a new client"))
			b.ended(claim)
			e.client().granted(e.exclusive("of another new client"))
		},
	},
}
