package schedlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/elect"
)

func TestElector(t *testing.T) {
	simulate(t, func(c *cluster) {
		locks := []*holdfast.Locker{c.replica(nil, 0).Locks, c.replica(nil, 0).Locks}
		first := NewElector(locks[0], "scheduler", elect.TTL(5*time.Second))
		synctest.Wait()
		second := NewElector(locks[1], "scheduler")
		synctest.Wait()
		lock, leads := first.Lock()
		if err := first.IsLeader(c.ctx); err != nil || !leads || lock.Key() != "scheduler" {
			c.Errorf("the first: %v, %v", err, leads)
		}
		if _, leads := second.Lock(); leads || !errors.Is(second.IsLeader(c.ctx), ErrNotLeader) {
			c.Error("there are two leaders")
		}
		if err := first.Close(); err != nil {
			c.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := second.IsLeader(c.ctx); err != nil {
			c.Errorf("the second, when the first has gone: %v", err)
		}
		if first.IsLeader(c.ctx) == nil || lock.Err() == nil {
			c.Error("the first still leads")
		}
		locks[1].Close()
		synctest.Wait()
		if err := second.IsLeader(c.ctx); !errors.Is(err, holdfast.ErrClosed) && !errors.Is(err, ErrNotLeader) {
			c.Errorf("without a store: %v", err)
		}
		if err := second.Close(); err != nil && !errors.Is(err, holdfast.ErrClosed) {
			c.Error(err)
		}
	})
}
