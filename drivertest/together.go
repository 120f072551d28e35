package drivertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// togetherRules are about concurrent calls of one client. Run them with the race detector.
var togetherRules = []rule{
	// A process calls one store from many goroutines. Run the suite with -race: the rule
	// produces the calls, and the race detector finds shared state.
	{
		name:  "together/all-methods",
		words: "Every method of a store may be called concurrently.",
		check: hammer,
	},
	// The race of a release with a beginning watch loses wake-ups, but only under load.
	// Members ask only when woken, so a lost wake-up stops the crowd.
	{
		name:  "together/crowd",
		words: "In a crowd that comes and goes, every waiter is woken, and no waiter sleeps past a release.",
		needs: Watch,
		check: within(alive/10, long, crowd),
	},
	// Unlock may meet a renewal in flight, in any order on the server. A renewal that reads,
	// waits and writes back brings the released claim to life again.
	{
		name:  "together/release-and-renew",
		words: "A Renew concurrent with a Release never makes the claim outlive the Release.",
		check: func(e *env, a, b *client) {
			for i := range e.rounds(25) {
				claim := e.exclusive(fmt.Sprint("claim ", i))
				a.granted(claim)
				calls := []func(){
					func() { a.renew(claim) },
					func() { a.settle(driver.Release{Claim: claim.Claim}) },
					func() { a.renew(claim) },
				}
				// The order of the starts decides which call is first.
				e.together(slices.Concat(calls[i%3:], calls[:i%3])...)
				next := b.takes("next")
				a.lost(claim)
				b.ended(next)
			}
		},
	},
}

// hammer calls everything at once on few keys. The race detector finds the races; the end
// shows that no claim is left behind.
func hammer(e *env, a, b *client) {
	var calls []func()
	for worker := range 8 {
		c := []*client{a, b}[worker%2]
		calls = append(calls, func() {
			for i := range e.rounds(20) {
				claim := on(fmt.Sprint(e.key, "/", i%3), waiting(e.exclusive(fmt.Sprint(worker, ".", i))))
				t := tenure{claim: claim}
				if c.has(Watch) {
					c.watchOn(claim).stop()
				}
				// The stranger's renewal fails beside the claim's, in the same call.
				c.tries(&t)
				c.renew(claim, e.exclusive("stranger"))
				if c.has(Inspect) {
					c.look(claim, i%4 == 0)
				}
				c.settle(late(claim))
			}
		})
	}
	e.together(calls...)
	for i := range 3 {
		next := on(fmt.Sprint(e.key, "/", i), e.exclusive("next"))
		a.admitted(next)
	}
}

// admitted is granted for a store that may back off: admitted asks again after a refusal
// with a reason in Blocked, although no claim is in the way.
func (c *client) admitted(claim driver.Ask) {
	end := c.runsOut(claim.Claim)
	for start := now(); ; <-time.After(10 * time.Millisecond) {
		grant := c.acquire(claim)
		switch {
		case grant.OK:
			return
		case grant.Blocked == nil:
			c.fail(c.prompt(end), "Acquire of %s was refused%s", show(claim), because(grant))
		case time.Since(start) > patience:
			c.failf("Acquire of %s was refused for %v, the last time because %v", show(claim), patience, grant.Blocked)
		}
	}
}

// look calls the methods for people.
func (c *client) look(claim driver.Ask, breaks bool) {
	c.holders(claim.Key)
	c.keys(claim.Key)
	if breaks {
		c.forfeits(&tenure{claim: claim})
	}
}

// crowd has five members lock one key eight times each, over two clients; the waiting members
// ask only when woken. Members wait for the calls of members, so a slow call may cost a member
// its place. A crowd of more members could wait for longer than a place lasts, though no call is
// slow. A member pauses for a millisecond under the lock, so that most members find the key held,
// and watch.
func crowd(e *env, a, b *client) {
	var members []func()
	for member := range 5 {
		c := []*client{a, b}[member%2]
		members = append(members, func() {
			for i := range e.rounds(8) {
				claim := waiting(e.exclusive(fmt.Sprint("member ", member, ", time ", i)))
				if !c.ask(claim).OK {
					c.joins(claim)
				}
				<-time.After(time.Millisecond)
				c.settle(driver.Release{Claim: claim.Claim})
			}
		})
	}
	e.together(members...)
}

// joins waits in the queue for a refused claim.
func (c *client) joins(claim driver.Ask) {
	w := c.watchOn(claim)
	if c.ask(claim).OK {
		w.stop()
		return
	}
	w.granted()
}
