package drivertest

import "github.com/holdfast-go/holdfast/driver"

// closeRules are about Close: the client ends, and the claims stay unless they cannot.
var closeRules = []rule{
	// A process closes its store while work may still run under a lock. Ending claims in
	// Close would let a second holder in at once.
	{
		name:  "close/leaves-claims",
		words: "Close leaves claims alone: the claims stand until their TTL ends.",
		needs: Outlive | Expiry,
		check: func(e *env, a, b *client) {
			sent := now()
			a.granted(lasting(e.exclusive("of a closed client"), e.short()))
			a.close()
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// The server ends the claims with the session of the client. A store that leaves the
	// session open keeps the key locked for the whole TTL.
	{
		name:  "close/ends-claims",
		words: "If claims cannot outlive their client, Close ends the claims, however long their TTL.",
		when:  func(h Harness) bool { return h.Lacks&Outlive != 0 },
		check: func(e *env, a, b *client) {
			a.granted(e.exclusive("of a closed client"))
			a.close()
			b.eventually(e.exclusive("next"), e.short())
		},
	},
	// Programs shut down with renewals and releases in flight. A Close that waits for calls,
	// while calls wait for a closed connection, never returns.
	{
		name:  "close/while-called",
		words: "A client may be closed while it holds claims and has calls in flight: every call ends.",
		check: func(e *env, a, b *client) {
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
	// Two Lockers of a program may share a connection pool or a server process. Close must
	// not stop what the second Locker uses, nor its claims.
	{
		name:  "close/one-client",
		words: "Close of one client does not affect a second client.",
		check: func(e *env, a, b *client) {
			claim := b.takes("of the other client")
			a.close()
			b.kept(claim)
			e.client().refused(e.exclusive("of a new client"))
			b.ended(claim)
			e.client().granted(e.exclusive("of another new client"))
		},
	},
}
