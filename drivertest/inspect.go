package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// inspector fails the rule if the store has lost the interface, because the harness has
// not declared so.
func (c *client) inspector() driver.Inspector {
	inspector, ok := c.store.(driver.Inspector)
	if !ok {
		c.failf("the store is no driver.Inspector, and its harness does not say so")
	}
	return inspector
}

// holders returns the public view of a key.
func (c *client) holders(key string) []driver.Holder {
	ctx, cancel := c.bounded()
	defer cancel()
	holders, err := c.inspector().Holders(ctx, key)
	if err != nil {
		c.failf("Holders of %q returned %v", key, told(err))
	}
	return holders
}

// keys returns the keys with a prefix, sorted.
func (c *client) keys(prefix string) []string {
	ctx, cancel := c.bounded()
	defer cancel()
	var keys []string
	for key, err := range c.inspector().Keys(ctx, prefix) {
		if err != nil {
			c.failf("Keys of %q returned %v", prefix, told(err))
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// inspectRules are about Holders and Keys, the view of the store for people.
var inspectRules = []rule{
	// The command and the runbook rely on the list to find out who holds a lock, where, and
	// for how long. Each field must be that of the claim.
	{
		name:  "inspect/holders",
		words: "Holders returns for each claim the owner, the weight, the token, the start and the remaining time.",
		needs: Inspect,
		check: holdersTell,
	},
	// A caller with the id can renew or release the claim. A list that shows ids would let a
	// reader of the list end a foreign lock.
	{
		name:  "inspect/secret",
		words: "A claim's own id is never shown, only its PublicID.",
		needs: Inspect,
		check: func(e *env, a, b *client) {
			claims := []driver.Ask{e.exclusive("holder"), waiting(e.exclusive("waiter"))}
			a.granted(claims[0])
			refusal := b.refused(claims[1])
			for _, c := range []*client{a, b} {
				shown := fmt.Sprintf("%+v %+v %q", c.holders(e.key), refusal, c.keys(e.key))
				for _, claim := range claims {
					if strings.Contains(shown, claim.ID) {
						e.failf("the id of %s is shown in %s", show(claim), shown)
					}
				}
			}
		},
	},
	// People read the list as the queue, and the core refuses the upgrade of a reader if a
	// claim waits ahead. A waiter has no token yet, so a token beside a waiter would be a
	// promise that the store has not made.
	{
		name:  "inspect/line",
		words: "Holders returns the holders first, then the waiters in FIFO order.",
		needs: Inspect | Queue,
		check: swift(func(e *env, a, b *client) {
			a.granted(e.exclusive("holder"))
			for i := range 4 {
				[]*client{b, a}[i%2].refused(waiting(e.exclusive(fmt.Sprint("waiter ", i+1))))
			}
			var line []string
			for _, h := range b.holders(e.key) {
				if h.Waiting && h.Fence != 0 {
					e.failf("%q waits and has token %d", h.Note, h.Fence)
				}
				line = append(line, fmt.Sprintf("%s %v", h.Note, h.Waiting))
			}
			want := []string{"holder false", "waiter 1 true", "waiter 2 true", "waiter 3 true", "waiter 4 true"}
			if !slices.Equal(line, want) {
				e.failf("told %q (name, waiting), want %q", line, want)
			}
		}),
	},
	// Notes have line breaks, quotes, other scripts and up to 1024 bytes. The rule catches
	// columns that are too short, wrong encodings and texts that are read as a format.
	{
		name:  "inspect/texts",
		words: "Owner and Note are shown exactly as the claim gave them.",
		needs: Inspect,
		check: func(e *env, a, b *client) {
			texts := []string{"", "  spaces  ", "line\nbreak\ttab", `"quotes" 'and' \back\slash`, "%s %d {} ${x} <b>", "漢字 🔒 é", strings.Repeat("x", driver.MaxText)}
			for i, text := range texts {
				claim := on(fmt.Sprint(e.key, "/", i), e.exclusive(text))
				claim.Owner = texts[len(texts)-1-i]
				a.granted(claim)
				holders := b.holders(claim.Key)
				if len(holders) != 1 {
					e.failf("one claim holds the key, and %d are told", len(holders))
				}
				if h := holders[0]; h.Note != claim.Note || h.Owner != claim.Owner {
					e.failf("owner %s and note %s are shown as %s and %s", cut(claim.Owner), cut(claim.Note), cut(h.Owner), cut(h.Note))
				}
			}
		},
	},
	// An operator who sees a dead holder will break or wait for nothing. A store that
	// removes expired claims lazily has to leave them out of the list.
	{
		name:  "inspect/gone",
		words: "Released and expired claims are not shown.",
		needs: Inspect | Expiry,
		check: func(e *env, a, b *client) {
			released, expired := e.exclusive("released"), lasting(e.exclusive("run out"), e.short())
			if h := b.holders(e.key); len(h) != 0 {
				e.failf("a key that was never used shows %+v", h)
			}
			// The token of the key stays in the store, without a claim.
			a.granted(released)
			a.ended(released)
			if h := b.holders(e.key); len(h) != 0 {
				e.failf("after the release the key shows %+v", h)
			}
			sent := now()
			a.granted(expired)
			if e.harness.Bubble {
				// Only in a bubble is it certain when the claim has expired. A store may count
				// from when a client first saw the claim.
				b.holders(e.key)
				<-time.After(e.short())
				if h := b.holders(e.key); len(h) != 0 {
					e.failf("after the claim ran out the key shows %+v", h)
				}
			}
			next := e.exclusive("next")
			b.lapses(next, sent, e.short())
			if h := a.holders(e.key); len(h) != 1 || h[0].Note != next.Note {
				e.failf("the key shows %+v, want only %s", h, show(next))
			}
		},
	},
	// Dashboards call Holders and Keys every few seconds. A look that renews a claim, as a
	// read of a cache may do, keeps the lock of a dead process for ever.
	{
		name:  "inspect/looking-changes-nothing",
		words: "A look at a key changes nothing.",
		needs: Inspect | Expiry,
		check: func(e *env, a, b *client) {
			// A look at a free key must not make a record that blocks the first claim.
			b.holders(e.key)
			sent := now()
			a.granted(lasting(e.exclusive("silent"), e.short()))
			b.holders(e.key)
			b.keys(e.key)
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// A prefix is plain text. A store that passes the prefix to LIKE, SCAN or a file pattern
	// must quote the special characters.
	{
		name:  "inspect/keys",
		words: "Keys yields every key with live claims that begins with the prefix, once.",
		needs: Inspect,
		check: keysByPrefix,
	},
	// A user shows the first ten keys with their holders. A store that holds a mutex or its
	// only connection while it yields deadlocks here.
	{
		name:  "inspect/keys-stopped",
		words: "A loop over Keys may stop early, and may use the store meanwhile.",
		needs: Inspect,
		check: func(e *env, a, _ *client) {
			for i := range 5 {
				a.granted(on(fmt.Sprint(e.key, "/", i), e.exclusive("holder")))
			}
			ctx, cancel := e.bounded()
			defer cancel()
			for key, err := range a.inspector().Keys(ctx, e.key) {
				if err != nil {
					e.failf("Keys returned %v", told(err))
				}
				a.holders(key)
				a.refused(on(key, e.exclusive("other")))
				break
			}
			if n := len(a.keys(e.key)); n != 5 {
				e.failf("%d of 5 keys are told after a loop that stopped early", n)
			}
		},
	},
}

// holdersTell compares every field of the view with the claim and its grant. Only in a
// bubble can the start of the claim be compared with the clock of the rule.
func holdersTell(e *env, a, b *client) {
	claim := e.exclusive("a note")
	claim.Owner = "an owner"
	before := now()
	grant := a.granted(claim)
	holders := b.holders(e.key)
	if len(holders) != 1 {
		e.failf("one claim holds the key, and %d are told", len(holders))
	}
	h := holders[0]
	if h.Since.IsZero() {
		e.failf("it is not told since when the claim holds")
	}
	if e.harness.Bubble && (h.Since.Before(before.Truncate(time.Second)) || h.Since.After(now())) {
		e.failf("the claim is told to hold since %v, it was granted at %v", h.Since, before)
	}
	if h.Left < 0 || h.Left > long {
		e.failf("the claim is told to have %v left, its TTL is %v", h.Left, long)
	}
	h.Since, h.Left = time.Time{}, 0
	want := driver.Holder{
		ID: driver.PublicID(claim.ID), Owner: claim.Owner, Note: claim.Note,
		Fence: grant.Fence, Weight: claim.Weight, Limit: claim.Limit,
	}
	if h != want {
		e.failf("the claim is told as %+v, want %+v", h, want)
	}
}

// keysByPrefix uses names in which servers see patterns, paths or a difference of case
// only.
func keysByPrefix(e *env, a, b *client) {
	// Characters with a meaning in patterns have no meaning here.
	names := []string{"", "/a", "/ab", "/b", "%", "_", "*", "?", "[a]", `\`, "{a}", "/a/../b", "A", "a"}
	for _, name := range names {
		a.granted(on(e.key+name, e.exclusive("holder")))
	}
	released := on(e.key+"/released", e.exclusive("released"))
	a.granted(released)
	a.ended(released)
	for _, name := range names {
		var want []string
		for _, other := range names {
			if strings.HasPrefix(other, name) {
				want = append(want, e.key+other)
			}
		}
		slices.Sort(want)
		if got := b.keys(e.key + name); !slices.Equal(got, want) {
			e.failf("prefix %q yields %q, want %q", name, strip(got, e.key), strip(want, e.key))
		}
	}
	if got := b.keys(""); !slices.Contains(got, e.key) {
		e.failf("the empty prefix does not yield %q", e.key)
	}
}

// strip leaves out the common prefix of a rule's keys, which would fill a report.
func strip(keys []string, prefix string) []string {
	var out []string
	for _, key := range keys {
		out = append(out, strings.TrimPrefix(key, prefix))
	}
	return out
}
