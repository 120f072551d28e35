// Package pace is the rule for the pauses of a waiter that the store does not wake.
package pace

import (
	"math/rand/v2"
	"time"
)

// First is the shortest pause.
const First = 5 * time.Millisecond

// A Pace is the pauses of one waiter between its looks at a lock. The zero value is ready.
type Pace struct{ pause, least time.Duration }

// Next returns the next pause: twice as long as the last pause, but within First, least and
// most. A waiter far back in the queue has a larger least. If least has become smaller, the
// waiter has moved up, and the pause is half as long as the last pause.
func (p *Pace) Next(least, most time.Duration) time.Duration {
	if least < p.least {
		p.pause /= 4
	}
	p.least = least
	p.pause = min(max(2*p.pause, First, least), most)
	return p.pause
}

// Spread returns a random time from d/2 to d. Waiters that began together would otherwise look
// together, all but one in vain.
func Spread(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}
