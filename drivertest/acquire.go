package drivertest

import (
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// acquireRules are about Acquire: one request, one atomic decision, one answer. The core
// repeats requests after lost answers, so idempotence counts as much as exclusion.
var acquireRules = []rule{
	// The core counts the lease from the TTL of the grant. A store that grants less than the
	// requested TTL must say so in the grant. Otherwise the holder works on after its claim
	// has expired. The client is alone: no session or listener of a second client helps.
	{
		name:  "acquire/free",
		words: "An Acquire of a free key is granted, and the grant says for how long.",
		check: func(e *env, a, b *client) {
			b.close()
			grant := a.granted(e.exclusive("first"))
			if grant.TTL < 0 || grant.TTL > long || e.has(Expiry) && grant.TTL == 0 {
				e.failf("granted for %v, asked for %v", grant.TTL, long)
			}
		},
	},
	// Mutual exclusion itself: readers and slots are refused beside an exclusive claim as
	// well. The rule catches stores that keep claims per client, and stores that return an
	// error for a refusal. A different key is not affected.
	{
		name:  "acquire/exclusive",
		words: "An exclusive claim tolerates no second claim on its key, from the same client or from a different client.",
		check: func(e *env, a, b *client) {
			holder := a.takes("holder")
			a.refused(e.exclusive("same client"))
			b.refused(e.exclusive("other client"))
			if e.has(Readers) {
				b.refused(e.reader("reader"))
			}
			if e.has(Slots) {
				b.refused(e.slot("slot", 1, 5))
			}
			b.granted(on(e.key+"/other", e.exclusive("other key")))
			a.kept(holder)
		},
	},
	// The core and its callers read the zero Grant as "no". A token left in a refusal could
	// reach a fence and outdate the real holder.
	{
		name:  "acquire/refusal-is-zero",
		words: "A refusal grants nothing: the token, the span and the TTL are zero.",
		check: func(e *env, a, _ *client) {
			a.granted(e.exclusive("holder"))
			for _, claim := range []driver.Ask{e.exclusive("trying"), waiting(e.exclusive("in the queue"))} {
				if g := a.refused(claim); g.Fence != 0 || g.Span != 0 || g.TTL != 0 {
					e.failf("%s was refused with Fence %d, Span %d, TTL %v", show(claim), g.Fence, g.Span, g.TTL)
				}
			}
		},
	},
	// The core repeats an Acquire whose answer was lost, perhaps over a new connection. A
	// store that issues a new token, or counts the weight twice, turns a lost packet into a
	// leaked claim.
	{
		name:  "acquire/twice-is-once",
		words: "A second Acquire with the id of a live claim grants the claim again, with the same token, and does not make a second claim.",
		check: promptly(askingTwice),
	},
	// A repeated request may meet its first copy on the server. A read followed by an
	// unconditional write grants the copies different tokens, or refuses the owner.
	{
		name:  "acquire/twice-at-the-same-time",
		words: "If several calls request the same claim at once, every call is granted, with the same token.",
		check: promptly(func(e *env, a, b *client) {
			claim := e.exclusive("only")
			grants := make([]driver.Grant, 8)
			var calls []func()
			for i := range grants {
				calls = append(calls, func() { grants[i] = []*client{a, e.either(a, b)}[i%2].ask(claim) })
			}
			e.together(calls...)
			for _, g := range grants {
				if !g.OK || g.Fence != grants[0].Fence {
					e.failf("of two answers to the same claim one was %v, the other %v", brief(grants[0]), brief(g))
				}
			}
			a.ended(claim)
			b.granted(e.exclusive("next"))
		}),
	},
	// The check and the write must be one atomic step: a script, a transaction, a compare-
	// and-set. A store that checks first and writes later grants the key twice under load.
	{
		name:  "acquire/one-of-many",
		words: "If many claims request a free key at once, exactly one claim is granted.",
		check: func(e *env, a, b *client) {
			clients := []*client{a, b, e.client()}
			grants := make([]driver.Grant, 24)
			var calls []func()
			for i := range grants {
				claim := e.exclusive(fmt.Sprint("rival ", i))
				calls = append(calls, func() { grants[i] = clients[i%3].ask(claim) })
			}
			e.together(calls...)
			granted := 0
			for _, g := range grants {
				if g.OK {
					granted++
				}
			}
			// The votes of the nodes of a store may stay split for longer than a call
			// lasts if the nodes are slow.
			if granted != 1 {
				e.fail(granted > 1 || e.longest < callLimit, "%d of %d exclusive claims were granted", granted, len(grants))
			}
		},
	},
	// The core decides how long to wait, and bounds each call by a second at most. A call
	// that blocks in the store holds a connection, and looks to the core like a server
	// without an answer.
	{
		name:  "acquire/does-not-wait",
		words: "Acquire requests once and does not wait, not even with Wait.",
		check: func(e *env, a, _ *client) {
			a.granted(e.exclusive("holder"))
			// A call that waits for the holder runs into the limit of every call.
			a.refused(waiting(e.exclusive("in the queue")))
		},
	},
	// TryLock does not release after a refusal. A store that queues the refused claim would
	// later grant the key to a caller that has left, and block the key for a TTL.
	{
		name:  "acquire/refused-leaves-nothing",
		words: "A refused Acquire without Wait leaves nothing behind.",
		check: func(e *env, a, b *client) {
			holder := a.takes("holder")
			tried := e.exclusive("tried")
			b.refused(tried)
			b.lost(tried)
			a.ended(holder)
			a.granted(e.exclusive("next"))
			b.lost(tried)
			b.nothing(tried)
		},
	},
	// Owner and Note are texts for people, and many processes share the same texts. A store
	// that compares the texts would let two processes share an exclusive claim.
	{
		name:  "acquire/owner-is-no-identity",
		words: "Owner and Note are never compared: only the id identifies a claim.",
		check: func(e *env, a, b *client) {
			claim := e.exclusive("same words")
			fence := a.granted(claim).Fence
			a.refused(e.exclusive("same words"))
			b.refused(e.exclusive("same words"))

			other := claim
			other.Owner, other.Note = "somebody else", "other words"
			if again := a.granted(other); again.Fence != fence {
				e.failf("the same id with another owner got token %d, not %d", again.Fence, fence)
			}
			a.ended(other)
			b.granted(e.exclusive("next"))
		},
	},
	// ErrHeld shows people who holds the lock. The core also asks again when the lease of
	// the holder ends, so a waiter notices a dead holder without polling.
	{
		name:  "acquire/refusal-tells",
		words: "A refusal says who owns the claim in the way and when the claim expires.",
		needs: Details,
		check: func(e *env, a, b *client) {
			holder := e.exclusive("the one in the way")
			fence := a.granted(holder).Fence
			g := b.refused(e.exclusive("other"))
			if g.Left < 0 || g.Left > long || e.has(Expiry) && g.Left < long/2 {
				e.failf("Retry is %v, while the holder has about %v left", g.Left, long)
			}
			want := driver.Holder{ID: driver.PublicID(holder.ID), Owner: holder.Owner, Note: holder.Note, Fence: fence}
			got := driver.Holder{ID: g.Holder.ID, Owner: g.Holder.Owner, Note: g.Holder.Note, Fence: g.Holder.Fence}
			if got != want {
				e.failf("the holder is told as %+v, want %+v", got, want)
			}
		},
	},
}

// askingTwice requests a claim three times, once over a second client if claims may roam.
// A smaller span is allowed, since the holder may have used up a part of the tokens. A
// single release must end the claim, however often the claim was requested.
func askingTwice(e *env, a, b *client) {
	claim := e.exclusive("twice")
	claim.Span = 16
	first := a.granted(claim)
	for _, c := range []*client{a, a, e.either(a, b)} {
		again := c.granted(claim)
		if again.Fence != first.Fence {
			e.failf("asking again gave token %d, the first time %d", again.Fence, first.Fence)
		}
		if max(again.Span, 1) > max(first.Span, 1) {
			e.failf("asking again gave %d tokens, the first time %d", again.Span, first.Span)
		}
	}
	b.refused(e.exclusive("other"))
	a.ended(claim)
	b.granted(e.exclusive("next"))
}

// brief is a grant in a report.
func brief(g driver.Grant) string {
	if !g.OK {
		return "a refusal" + because(g)
	}
	return fmt.Sprintf("a grant with token %d", g.Fence)
}
