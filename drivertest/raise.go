package drivertest

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	// ahead is how far tokens are raised: further than a clock in microseconds advances
	// while a rule runs.
	ahead = 10_000_000

	// tooFar is further than a store may go, even after other rules have raised tokens.
	tooFar = 2 * driver.MaxLead
)

// raiseRules are about the tokens that a caller requests or raises. Redlock needs both to
// make the nodes of a majority agree.
var raiseRules = []rule{
	// Redlock asks each node for a token above the highest of a majority. A store that
	// ignores the request, or accepts a smaller one, breaks the order of tokens.
	{
		name:  "raise/asked-for",
		words: "Acquire grants at least the requested token, and as always a token above every earlier token.",
		needs: Tokens | Raise,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			for i, lead := range []int{0, ahead, -ahead, 1, 2 * ahead, 0} {
				claim := e.exclusive(fmt.Sprintf("claim %d, %d ahead", i, lead))
				claim.Span = 8
				claim.Fence = uint64(max(int64(t.last)+int64(lead), 1))
				c := []*client{a, b}[i%2]
				g := c.granted(claim)
				if g.Fence < claim.Fence {
					e.failf("%s asked for token %d and got %d", show(claim), claim.Fence, g.Fence)
				}
				t.grew(claim, g)
				c.ended(claim)
			}
		},
	},
	// The first answer may have reached the holder, whose writes carry the first token. A
	// second token for the same claim would outdate the holder's own writes.
	{
		name:  "raise/asked-again",
		words: "A repeated request for a larger token does not change the token of the claim.",
		needs: Tokens | Raise,
		check: func(e *env, a, b *client) {
			claim := e.exclusive("asks twice")
			first := a.granted(claim).Fence
			for _, c := range []*client{a, e.either(a, b)} {
				if again := c.granted(asking(claim, first+ahead)).Fence; again != first {
					e.failf("asking again, for token %d, gave %d; the first time it was %d", first+ahead, again, first)
				}
			}
		},
	},
	// One machine with a clock years ahead would use up the tokens of the key for good,
	// below the 2^53 that clients can read.
	{
		name:  "raise/asked-too-far",
		words: "An Acquire for a token more than MaxLead ahead is ErrInvalid, and leaves nothing behind.",
		needs: Tokens | Raise,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			first, poison, next := e.exclusive("first"), e.exclusive("poison"), e.exclusive("next")
			t.grew(first, a.granted(first))
			a.ended(first)
			a.invalid(asking(waiting(poison), t.last+tooFar))
			b.lost(poison)
			t.grew(next, b.granted(next))
			t.sane(first, next)
		},
	},
	// A majority of nodes agrees on the highest token by renewals. A late renewal with a
	// smaller token must not undo the agreement.
	{
		name:  "raise/renewal",
		words: "Renew raises a claim's token and never lowers it. Later requests and Holders return the raised token, and the span stays the same.",
		needs: Tokens | Raise,
		check: raising,
	},
	// A raise that lives in the client, or in the claim alone, is forgotten with the claim.
	// The next holder would then have a smaller token, and the fence would refuse its
	// writes.
	{
		name:  "raise/later-grants",
		words: "Every later grant of the key has a token above the raised token, span included, whichever client asks.",
		needs: Tokens | Raise,
		check: raisedForGood,
	},
	// The same bound as for an Acquire. The refused renewal must neither end the claim nor
	// leave its mark on later tokens.
	{
		name:  "raise/too-far",
		words: "A Renew to a token more than MaxLead ahead is ErrInvalid, and the claim keeps its token.",
		needs: Tokens | Raise,
		check: func(e *env, a, b *client) {
			t := e.tokens()
			claim, next := e.exclusive("raised too far"), e.exclusive("next")
			first := a.granted(claim)
			t.grew(claim, first)
			a.unraised(claim, first.Fence+tooFar)
			b.refused(e.exclusive("other"))
			a.kept(claim)
			if again := e.either(a, b).granted(claim).Fence; again != first.Fence {
				e.failf("the claim has token %d, and had %d before it was to be raised too far", again, first.Fence)
			}
			a.ended(claim)
			t.grew(next, b.granted(next))
			t.sane(claim, next)
		},
	},
	// Readers of one phase share a token, so that no reader's write outdates a second
	// reader. A store must raise the phase, not the single claim.
	{
		name:  "raise/readers",
		words: "A reader that joins other readers gets the token of the phase, whatever it requests: the highest raised token of the phase.",
		needs: Tokens | Raise | Readers,
		check: raisingReaders,
	},
	// After a raise the phase has one token again as soon as its readers ask. The rule
	// catches stores that keep a token for each reader.
	{
		name:  "raise/reader-asks-again",
		words: "A reader that asks again after another reader was raised receives the raised token, and keeps it.",
		needs: Tokens | Raise | Readers,
		check: raisedBeside,
	},
}

// asking is a with a least token.
func asking(a driver.Ask, fence uint64) driver.Ask {
	a.Fence = fence
	return a
}

// raised renews a claim, with a token, and expects that the claim stands.
func (c *client) raised(claim driver.Ask, fence uint64) {
	c.keeps(driver.Renewal{Claim: claim.Claim, Fence: fence})
}

// unraised renews a claim and expects that its token cannot be raised so far.
func (c *client) unraised(claim driver.Ask, fence uint64) {
	r := driver.Renewal{Claim: claim.Claim, Fence: fence}
	if err := c.renewals(r)[0]; !errors.Is(err, driver.ErrInvalid) {
		c.failf("Renew of %s to token %d returned %v, not ErrInvalid", show(claim), fence, told(err))
	}
}

// sane fails if the last token is as far ahead as a refused token.
func (t *tokens) sane(before, after driver.Ask) {
	if t.last-t.first > tooFar/2 {
		t.failf("%s has token %d after %s had %d: the one that was refused has left its mark", show(after), t.last, show(before), t.first)
	}
}

// raising renews with a higher token, a lower token, 1 and 0: only the highest counts, for
// the owner, for a second client and for Holders.
func raising(e *env, a, b *client) {
	claim := e.exclusive("raised")
	claim.Span = 16
	first := a.granted(claim)
	high := first.Fence + ahead
	for _, fence := range []uint64{high, high - 1, 1, 0} {
		a.raised(claim, fence)
		for _, c := range []*client{a, e.either(a, b)} {
			again := c.granted(claim)
			if again.Fence != high {
				e.failf("asked for token %d, a renewal has made %d of %d; want %d", fence, again.Fence, first.Fence, high)
			}
			if max(again.Span, 1) != max(first.Span, 1) {
				e.failf("a renewal for token %d has made %d of %d tokens", fence, again.Span, first.Span)
			}
		}
		if !e.has(Inspect) {
			continue
		}
		if hs := b.holders(e.key); len(hs) != 1 || hs[0].Fence != high {
			e.failf("Holders tells %+v, want the one claim with token %d", hs, high)
		}
	}
}

// raisedForGood raises the tokens of a claim from Acquire and of a claim from the queue.
// The token must survive the release, the hand-over and the end of every client that knew
// it.
func raisedForGood(e *env, a, b *client) {
	e.client() // Some stores live as long as their clients.
	t := e.tokens()
	raise := func(c *client, claim driver.Ask) {
		claim.Fence = t.last + ahead
		c.raised(claim, claim.Fence)
		t.grew(claim, c.granted(claim))
	}
	first, waiter, next := e.exclusive("first"), waiting(e.exclusive("waiter")), e.exclusive("next")
	first.Span, waiter.Span = 16, 16
	t.grew(first, a.granted(first))
	raise(a, first)
	raise(a, first)
	b.refused(waiter)
	a.ended(first)
	t.grew(waiter, b.granted(waiter))
	raise(b, waiter)
	b.ended(waiter)
	a.close()
	b.close()
	t.grew(next, e.client().granted(next))
}

// raisingReaders has readers join between raises. A lower raise by a second reader changes
// nothing.
func raisingReaders(e *env, a, b *client) {
	first, second := e.reader("first"), e.reader("second")
	phase := a.granted(first).Fence
	joins := func(c *client, claim driver.Ask, want uint64) {
		if g := c.granted(claim); g.Fence != want {
			e.failf("%s has token %d, the phase %d", show(claim), g.Fence, want)
		}
	}
	joins(b, asking(second, phase+ahead), phase)
	a.raised(first, phase+2*ahead)
	joins(b, e.reader("third"), phase+2*ahead)
	b.raised(second, phase+ahead)
	joins(a, e.reader("fourth"), phase+2*ahead)
}

// raisedBeside has a reader ask again after its neighbour was raised, and once more after
// the neighbour has left.
func raisedBeside(e *env, a, b *client) {
	raised, other := e.reader("raised"), e.reader("beside it")
	phase := a.granted(raised).Fence
	b.granted(other)
	high := phase + ahead
	a.raised(raised, high)
	for _, c := range []*client{b, e.either(b, a)} {
		if g := c.granted(other); g.Fence != high {
			e.failf("%s asked again and got token %d; its phase was raised from %d to %d", show(other), g.Fence, phase, high)
		}
	}
	a.ended(raised)
	if g := b.granted(other); g.Fence != high {
		e.failf("%s has token %d, and had %d before %s was released", show(other), g.Fence, high, show(raised))
	}
	if !e.has(Inspect) {
		return
	}
	if hs := a.holders(e.key); len(hs) != 1 || hs[0].Fence != high {
		e.failf("Holders tells %+v, want the one claim with token %d", hs, high)
	}
}
