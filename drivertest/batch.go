package drivertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	// batch is as many claims as the core renews at once.
	batch = 500

	// heavyBatch is the batch of a heavy store in the short form: more claims than a store changes
	// at the same time.
	heavyBatch = 40
)

// batchRules are about calls with many claims. The core renews and releases in batches,
// and trusts the order of the answers.
var batchRules = []rule{
	// A batch may be empty once the core has dropped claims that ended meanwhile. A store
	// that sends a statement without parameters would fail here.
	{
		name:  "batch/none",
		words: "Renew and Release of an empty batch succeed.",
		check: func(e *env, a, _ *client) {
			a.renew()
			a.release()
		},
	},
	// The core renews every due claim of a process in one call. One lost claim must not hide
	// the fate of its neighbours: a shifted answer ends the wrong lock.
	{
		name:  "batch/renew",
		words: "Renew of 500 claims returns one answer per claim, in order, even if some claims are gone.",
		check: func(e *env, a, b *client) {
			claims, gone := e.batch(a, b)
			e.compare("Renew", claims, gone, a.renew(claims...))
			e.compare("a second Renew", claims, gone, a.renew(claims...))
		},
	},
	// The core repeats only the claims whose release failed. An answer in a different order
	// leaves a released claim in the cleaner and a live claim in the store.
	{
		name:  "batch/release",
		words: "Release of 500 claims returns one answer per claim, in order, even if some claims are gone, and ends every claim.",
		check: func(e *env, a, b *client) {
			claims, gone := e.batch(a, b)
			e.compare("Release", claims, gone, a.release(claims...))
			for i := range claims {
				gone[i] = true
			}
			e.compare("Renew after Release", claims, gone, a.renew(claims...))
			for _, i := range []int{0, 1, len(claims) / 2, len(claims) - 1} {
				b.granted(on(claims[i].Key, e.exclusive("next")))
			}
		},
	},
	// Readers and slots of one process share a key. A store that groups the batch by key
	// must still tell the claims apart.
	{
		name:  "batch/one-key",
		words: "Claims on the same key may be in one call, and each claim has its own answer.",
		needs: Readers,
		check: func(e *env, a, _ *client) {
			held, stranger, released := e.reader("held"), e.reader("stranger"), e.reader("released")
			a.granted(held)
			a.granted(released)
			a.ended(released)
			claims, gone := []driver.Ask{stranger, held, released}, []bool{true, false, true}
			e.compare("Renew", claims, gone, a.renew(claims...))
			e.compare("Release", claims, gone, a.release(claims...))
		},
	},
	// A nil slice means that every claim was kept. A store that collects only the answers of
	// found claims returns nil here, and holders go on without a lock.
	{
		name:  "batch/all-gone",
		words: "If every claim of a call is gone, the call returns ErrLost for each claim.",
		check: func(e *env, a, _ *client) {
			var claims []driver.Ask
			for i := range 7 {
				claims = append(claims, on(fmt.Sprint(e.key, "/", i), e.exclusive("stranger")))
			}
			gone := []bool{true, true, true, true, true, true, true}
			e.compare("Renew", claims, gone, a.renew(claims...))
			e.compare("Release", claims, gone, a.release(claims...))
		},
	},
}

// batch lets a hold claims on many keys. Some claims are gone: nobody was granted the claim.
// In the short form most claims are gone.
func (e *env) batch(a, b *client) (claims []driver.Ask, gone []bool) {
	n := batch
	if testing.Short() && !e.harness.Bubble && e.harness.Heavy {
		n = heavyBatch
	}
	gone = make([]bool, n)
	var makers []func()
	for i := range n {
		claims = append(claims, on(fmt.Sprint(e.key, "/", i), e.exclusive(fmt.Sprint("number ", i))))
		gone[i] = i%7 == 3 || i == n-1 || testing.Short() && !e.harness.Bubble && i%5 > 0
	}
	const hands = 8
	for hand := range hands {
		makers = append(makers, func() {
			for i := hand; i < n; i += hands {
				switch {
				case !gone[i]:
					a.held(claims[i])
				case i%14 == 10: // gone, and its key is held by b
					b.held(on(claims[i].Key, e.exclusive("another")))
				}
			}
		})
	}
	e.together(makers...)
	return claims, gone
}

// held is granted, for many goroutines at once.
func (c *client) held(claim driver.Ask) {
	if grant := c.ask(claim); !grant.OK {
		c.failf("Acquire of %s was refused%s", show(claim), because(grant))
	}
}

// compare checks the answers of one call.
func (e *env) compare(call string, claims []driver.Ask, gone []bool, errs []error) {
	for i, err := range errs {
		switch {
		case gone[i] && !errors.Is(err, driver.ErrLost):
			e.failf("%s: claim %d of %d, which is gone, was answered %v, not ErrLost", call, i, len(claims), told(err))
		case !gone[i] && err != nil:
			e.failf("%s: claim %d of %d, which is held, was answered %v", call, i, len(claims), told(err))
		}
	}
}
