package engine

import (
	"errors"
	"math/rand/v2"

	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// retry tries until a try succeeds, or the wait is over. Like a contender, retry tolerates a
// failing store for a while.
func (c *call) retry() (*Hold, error) {
	for {
		h, err := c.once()
		now := c.now()
		switch {
		case err == nil:
			return h, nil
		case c.refusal != nil && silence.Ended(c.ctx) != nil:
			return nil, c.cancelled()
		case errors.Is(err, caller.ErrHeld):
			c.answer, c.answeredAt, c.failure = true, now, nil
		case c.failure == nil, c.hopeless(now, err): // not of the store, or for too long
			return nil, err
		}
		pause := c.Least + rand.N(c.Most-c.Least+1)
		if c.Limited {
			pause = min(pause, c.began+c.Wait-now)
		}
		switch cut := c.sleep(c.ctx, pause); {
		case errors.Is(cut, ErrClosed):
			return nil, cut
		case cut != nil:
			return nil, c.cancelled()
		case c.Limited && c.now() >= c.began+c.Wait:
			return nil, c.timedOut()
		}
	}
}
