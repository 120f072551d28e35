package schedlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// A store that refuses for a reason of its own, as Redlock does after a restart of its nodes, does not
// say that another replica runs the tick. If another does, the store shows the holder.
func TestRefusedByTheStore(t *testing.T) {
	simulate(t, func(c *cluster) {
		store := memlock.New()
		j := c.replica(Every(time.Hour), 0)
		j.Locks = must.Get(holdfast.New(refusing{store}, nil))
		defer j.Locks.Close()
		tick := j.Schedule.Next(j.now())
		time.Sleep(time.Until(tick))
		if err := j.Run(c.ctx, c.run("one")); errors.Is(err, ErrTaken) || !errors.Is(err, errQuarantine) {
			c.Errorf("got the error %v, want that of the store, and not ErrTaken", err)
		}
		other := must.Get(holdfast.New(store, nil))
		defer other.Close()
		must.Get(other.TryLock(c.ctx, j.key(tick)))
		if err := j.Run(c.ctx, c.run("one")); !errors.Is(err, ErrTaken) || !errors.Is(err, errQuarantine) {
			c.Errorf("beside another replica: got the error %v, want ErrTaken", err)
		}
	})
}

// A refusing store has just restarted.
type refusing struct{ *memlock.Store }

var errQuarantine = errors.New("just restarted")

func (refusing) Acquire(context.Context, driver.Ask) (driver.Grant, error) {
	return driver.Grant{Blocked: errQuarantine}, nil
}
