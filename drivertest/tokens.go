package drivertest

import (
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// tokenRules are about fencing tokens: every later holder of a key has a larger token,
// through releases, expiries, breaks and restarts of clients.
var tokenRules = []rule{
	// The fence compares tokens of successive holders. A counter that lives in the record of
	// the claim restarts when the claim is deleted.
	{
		name:  "token/over-release",
		words: "Every exclusive grant has a token above every earlier token of the key.",
		needs: Tokens,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			for i := range 20 {
				claim := e.exclusive(fmt.Sprint("holder ", i))
				c := []*client{a, a, b}[i%3]
				t.grew(claim, c.granted(claim))
				c.ended(claim)
			}
		},
	},
	// Expiry is the case that fences are for: the old holder may still be writing. A server
	// that drops the expired record must not drop the counter with it.
	{
		name:  "token/over-expiry",
		words: "The token grows after a claim has expired.",
		needs: Tokens | Expiry,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			first, second := lasting(e.exclusive("run out"), e.short()), lasting(e.exclusive("next"), e.short())
			t.grew(first, a.granted(first))
			t.grew(second, b.eventually(second, e.short()))
			third := e.exclusive("third")
			t.grew(third, a.eventually(third, e.short()))
		},
	},
	// The broken holder may be at work until it is notified. The next holder needs a larger
	// token for the fence to refuse its writes.
	{
		name:  "token/over-break",
		words: "The token grows after a claim was broken.",
		needs: Tokens | Inspect,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			first, second := e.exclusive("broken"), e.exclusive("next")
			t.grew(first, a.granted(first))
			b.breaks(first)
			t.grew(second, b.granted(second))
		},
	},
	// The counter belongs to the store, not to a process. A counter in memory would repeat
	// tokens after a deployment.
	{
		name:  "token/over-restart",
		words: "The token grows when every client but one has gone and new clients come.",
		needs: Tokens,
		check: func(e *env, _, b *client) {
			// One client stays: some stores live as long as their clients.
			t := e.tokens()
			for i := range 3 {
				claim := e.exclusive(fmt.Sprint("process ", i))
				t.grew(claim, b.granted(claim))
				b.ended(claim)
				b.close()
				b = e.client()
			}
		},
	},
	// The engine hands one claim from goroutine to goroutine with a token each. If the next
	// grant begins inside the span, two holders share a token.
	{
		name:  "token/span",
		words: "The tokens Fence to Fence+Span-1 belong to one grant, and are no more than requested.",
		needs: Tokens,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			for i, span := range []int{driver.MaxSpan, 1, 64, 2, 0, driver.MaxSpan, driver.MaxSpan} {
				claim := e.exclusive(fmt.Sprintf("asks for %d", span))
				claim.Span = span
				c := []*client{a, b}[i%2]
				t.grew(claim, c.granted(claim))
				c.ended(claim)
			}
		},
	},
	// A store that hands the key to a waiter grants in a different place than Acquire. The
	// grant of a waiter needs its own token and the span that the waiter requested.
	{
		name:  "token/span-in-line",
		words: "A claim granted after waiting has a token above every earlier token, with its span.",
		needs: Tokens,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			holder, waiter, next := e.exclusive("holder"), waiting(e.exclusive("waiter")), e.exclusive("next")
			holder.Span, waiter.Span = 16, 16
			t.grew(holder, a.granted(holder))
			b.refused(waiter)
			a.ended(holder)
			t.grew(waiter, b.granted(waiter))
			b.ended(waiter)
			t.grew(next, a.granted(next))
		},
	},
	// Lua, JSON and spreadsheets hold numbers as floats of 53 bits. Above that, neighbouring
	// tokens compare as equal, and the fence lets a late write through.
	{
		name:  "token/below-2-to-53",
		words: "Tokens stay below 2^53.",
		needs: Tokens,
		check: func(e *env, a, _ *client) {
			claim := e.exclusive("holder")
			claim.Span = driver.MaxSpan
			if g := a.granted(claim); last(g) >= 1<<53 {
				e.failf("the last token of the grant is %d", last(g))
			}
		},
	},
	// Readers hold at the same time, so the fence must accept each of them. A token per
	// reader would let the fence refuse the reader who came first.
	{
		name:  "token/readers-share",
		words: "Readers of one read phase share a token, above every earlier writer's token and below every later writer's token.",
		needs: Tokens | Readers,
		check: readersShare,
	},
	// Slots hold at the same time but do different work, so their tokens must differ. A
	// store that shares the token, as for readers, gives two jobs the same token.
	{
		name:  "token/slots",
		words: "Every slot has a token above every earlier token, whichever slots stand beside it.",
		needs: Tokens | Slots,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			var previous driver.Ask
			for i := range 9 {
				claim := e.slot(fmt.Sprint("slot ", i), 1, 3)
				if i >= 3 {
					[]*client{b, a}[i%2].ended(previous)
				}
				t.grew(claim, []*client{a, b}[i%2].granted(claim))
				previous = claim
			}
		},
	},
	// Readers share the token of their phase, and the upgrade of a reader writes. If the
	// phase outlived the upgrade, a reader that comes later would have a smaller token than
	// what was written, and the fence would refuse the reader.
	{
		name:  "token/slot-beside-readers",
		words: "A slot beside readers, or the upgrade of a reader, has a larger token than all before it, and the readers behind share a larger token again.",
		needs: Tokens | Readers | Slots,
		check: slotEndsPhase,
	},
}

// tokens watches the tokens of one key grow.
type tokens struct {
	*env
	claim       driver.Ask
	first, last uint64
}

// tokens begins to watch the rule's key.
func (e *env) tokens() *tokens { return &tokens{env: e} }

// grew takes the next grant and fails if a token of the grant was given before.
func (t *tokens) grew(claim driver.Ask, g driver.Grant) {
	if g.Span < 0 || g.Span > max(claim.Span, 1) {
		t.failf("%s was given %d tokens, having asked for %d", show(claim), g.Span, claim.Span)
	}
	if g.Fence == 0 {
		t.failf("%s was given token 0, which says that the store has none", show(claim))
	}
	if g.Fence <= t.last {
		t.failf("%s was given token %d after %s had those up to %d", show(claim), g.Fence, show(t.claim), t.last)
	}
	if t.first == 0 {
		t.first = g.Fence
	}
	t.claim, t.last = claim, last(g)
}

// last is the last token of a grant.
func last(g driver.Grant) uint64 { return g.Fence + uint64(max(g.Span, 1)) - 1 }

// readersShare goes through three read phases between writers. In each phase the first
// reader leaves early, which must not end the phase.
func readersShare(e *env, a, b *client) {
	t := e.tokens()
	for round := range 3 {
		writer := e.exclusive(fmt.Sprint("writer ", round))
		writer.Span = 8
		t.grew(writer, a.granted(writer))
		a.ended(writer)

		first := e.reader(fmt.Sprint("first reader ", round))
		phase := a.granted(first)
		t.grew(first, phase)
		second, third := e.reader("second reader"), e.reader("third reader")
		for _, reader := range []driver.Ask{second, third} {
			if g := b.granted(reader); g.Fence != phase.Fence {
				e.failf("two readers at the same time have the tokens %d and %d", phase.Fence, g.Fence)
			}
		}
		// The phase goes on when the reader that began it has left.
		a.ended(first)
		fourth := e.reader("fourth reader")
		if g := a.granted(fourth); g.Fence != phase.Fence {
			e.failf("a reader that joined others has token %d, they have %d", g.Fence, phase.Fence)
		}
		a.ended(fourth)
		b.ended(second)
		b.ended(third)
	}
}

// slotEndsPhase grants an upgrade and a slot beside a reader, one after the other, and looks
// at the readers that come after each. The first reader holds all the time, so the key is
// never free, and a store that ends a phase only with its last reader fails.
func slotEndsPhase(e *env, a, b *client) {
	t := e.tokens()
	first := e.reader("first reader")
	t.grew(first, a.granted(first))
	for i, ends := range []driver.Ask{e.upgrade("upgrade"), e.slot("1 of 9", 1, 9)} {
		t.grew(ends, a.granted(ends))
		a.ended(ends)
		next, joining := e.reader(fmt.Sprint("reader behind ", i)), e.reader(fmt.Sprint("reader that joins ", i))
		phase := b.granted(next)
		t.grew(next, phase)
		if g := a.granted(joining); g.Fence != phase.Fence {
			e.failf("%s has token %d beside %s with %d", show(joining), g.Fence, show(next), phase.Fence)
		}
		b.ended(next)
		a.ended(joining)
	}
	a.kept(first)
}
