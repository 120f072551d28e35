package schedlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/elect"
)

// ErrNotLeader says that another replica leads, or nobody yet.
var ErrNotLeader = errors.New("not the leader")

// An Elector campaigns in the background, by [elect.Run], and knows whether this replica
// leads. An Elector implements the Elector of gocron, whose jobs then all run on the
// leader.
//
// A scheduler asks only before a run. If the leader is replaced, a run goes on, unless the
// run watches the lock that [Elector.Lock] returns. A [Job] watches its lock by itself.
type Elector struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error // why the campaign has ended
	lock  atomic.Pointer[holdfast.Lock]
}

// NewElector returns an Elector that campaigns for a job until it is closed. The options
// are the options of [elect.Run]. If the campaign ends earlier, for example because of a
// wrong option, [Elector.IsLeader] and [Elector.Close] return the reason.
func NewElector(locks *holdfast.Locker, job string, opts ...elect.Option) *Elector {
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		e.err = elect.Run(ctx, locks, job, e.lead, opts...)
	}()
	return e
}

func (e *Elector) lead(ctx context.Context) error {
	lock, _ := holdfast.FromContext(ctx)
	e.lock.Store(lock)
	defer e.lock.Store(nil)
	<-ctx.Done()
	return ctx.Err()
}

// IsLeader returns nil if this replica leads. Otherwise IsLeader returns an error, which
// matches [ErrNotLeader] while the Elector campaigns. IsLeader does no I/O.
func (e *Elector) IsLeader(context.Context) error {
	if _, leads := e.Lock(); leads {
		return nil
	}
	select {
	case <-e.ended:
		return fmt.Errorf("schedlock: the elector has ended: %w", e.err)
	default:
		return ErrNotLeader
	}
}

// Lock returns the lock of the leader if this replica leads: the lock has the fencing
// token, and a context for the leader's work.
func (e *Elector) Lock() (*holdfast.Lock, bool) {
	lock := e.lock.Load()
	return lock, lock != nil && lock.Err() == nil
}

// Close ends the campaign. If this replica leads, Close hands over to another replica.
func (e *Elector) Close() error {
	e.stop()
	<-e.ended
	if errors.Is(e.err, context.Canceled) {
		return nil
	}
	return e.err
}
