package drivertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

// batch is as many claims as the core renews at once.
const batch = 500

var batchRules = []rule{
	{
		name:  "batch/none",
		words: "Renew and Release of no claims are all well.",
		check: func(e *env) {
			a := e.client()
			a.renew()
			a.release()
		},
	},
	{
		name:  "batch/renew",
		words: "Renew of 500 claims returns one answer per claim, in order, though some are gone.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			claims, gone := e.batch(a, b)
			e.compare("Renew", claims, gone, a.renew(claims...))
			e.compare("a second Renew", claims, gone, a.renew(claims...))
		},
	},
	{
		name:  "batch/release",
		words: "Release of 500 claims returns one answer per claim, in order, though some are gone, and ends all of them.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			claims, gone := e.batch(a, b)
			e.compare("Release", claims, gone, a.release(claims...))
			for i := range claims {
				gone[i] = true
			}
			e.compare("Renew after Release", claims, gone, a.renew(claims...))
			for _, i := range []int{0, 1, batch / 2, batch - 1} {
				b.granted(on(claims[i].Key, e.exclusive("next")))
			}
		},
	},
	{
		name:  "batch/one-key",
		words: "Claims on the same key may be in one call, and each has its own answer.",
		needs: Readers,
		check: func(e *env) {
			a := e.client()
			held, stranger, released := e.reader("held"), e.reader("stranger"), e.reader("released")
			a.granted(held)
			a.granted(released)
			a.ended(released)
			claims, gone := []driver.Ask{stranger, held, released}, []bool{true, false, true}
			e.compare("Renew", claims, gone, a.renew(claims...))
			e.compare("Release", claims, gone, a.release(claims...))
		},
	},
	{
		name:  "batch/all-gone",
		words: "A call of which every claim is gone says so for each.",
		check: func(e *env) {
			a := e.client()
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

// batch lets a hold claims on 500 keys. Some claims are gone: nobody was granted the claim.
// In the short form most claims are gone.
func (e *env) batch(a, b *client) (claims []driver.Ask, gone []bool) {
	gone = make([]bool, batch)
	var makers []func()
	for i := range batch {
		claims = append(claims, on(fmt.Sprint(e.key, "/", i), e.exclusive(fmt.Sprint("number ", i))))
		gone[i] = i%7 == 3 || i == batch-1 || testing.Short() && !e.harness.Bubble && i%5 > 0
	}
	const hands = 8
	for hand := range hands {
		makers = append(makers, func() {
			for i := hand; i < batch; i += hands {
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
