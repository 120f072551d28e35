package drivertest

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

var acquireRules = []rule{
	{
		name:  "acquire/free",
		words: "A claim on a free key is granted, and the grant says for how long.",
		check: func(e *env) {
			a := e.client()
			grant := a.granted(e.exclusive("first"))
			if grant.TTL < 0 || grant.TTL > long || e.has(Expiry) && grant.TTL == 0 {
				e.failf("granted for %v, asked for %v", grant.TTL, long)
			}
		},
	},
	{
		name:  "acquire/exclusive",
		words: "An exclusive claim tolerates no other claim on its key, from this client or another.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			holder := e.exclusive("holder")
			a.granted(holder)
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
	{
		name:  "acquire/refusal-is-zero",
		words: "A refusal grants nothing: it has no token, no span and no TTL.",
		check: func(e *env) {
			a := e.client()
			a.granted(e.exclusive("holder"))
			for _, claim := range []driver.Ask{e.exclusive("trying"), waiting(e.exclusive("in the queue"))} {
				if g := a.refused(claim); g.Fence != 0 || g.Span != 0 || g.TTL != 0 {
					e.failf("%s was refused with Fence %d, Span %d, TTL %v", show(claim), g.Fence, g.Span, g.TTL)
				}
			}
		},
	},
	{
		name:  "acquire/twice-is-once",
		words: "Asking again with the id of a live claim grants it again, with the same fence, and it is still one claim.",
		check: promptly(askingTwice),
	},
	{
		name:  "acquire/twice-at-the-same-time",
		words: "The same claim asked for by several calls at once is granted once, to all of them.",
		check: promptly(func(e *env) {
			a, b := e.client(), e.client()
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
	{
		name:  "acquire/one-of-many",
		words: "Of many claims that ask for a free key at once, one is granted.",
		check: func(e *env) {
			clients := []*client{e.client(), e.client(), e.client()}
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
				e.fail(granted > 1 || e.longest < 100*time.Millisecond, "%d of %d exclusive claims were granted", granted, len(grants))
			}
		},
	},
	{
		name:  "acquire/does-not-wait",
		words: "Acquire asks once and does not wait, not even with Wait.",
		check: func(e *env) {
			a := e.client()
			a.granted(e.exclusive("holder"))
			// A call that waits for the holder runs into the limit of every call.
			a.refused(waiting(e.exclusive("in the queue")))
		},
	},
	{
		name:  "acquire/refused-leaves-nothing",
		words: "An Acquire without Wait that is refused leaves nothing behind.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			holder := e.exclusive("holder")
			a.granted(holder)
			tried := e.exclusive("tried")
			b.refused(tried)
			b.lost(tried)
			a.ended(holder)
			a.granted(e.exclusive("next"))
			b.lost(tried)
			b.nothing(tried)
		},
	},
	{
		name:  "acquire/owner-is-no-identity",
		words: "Owner and Note are never compared: only the id tells claims apart.",
		check: func(e *env) {
			a, b := e.client(), e.client()
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
	{
		name:  "acquire/refusal-tells",
		words: "A refusal says whose claim is in the way and when that runs out.",
		needs: Details,
		check: func(e *env) {
			a, b := e.client(), e.client()
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

func askingTwice(e *env) {
	a, b := e.client(), e.client()
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
