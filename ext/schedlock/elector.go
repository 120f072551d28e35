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

// An Elector campaigns in the background, by [elect.Run], and tells whether this
// replica leads. It is an Elector of gocron, whose jobs then all run on the leader.
//
// A scheduler asks before a run only. A run goes on when the leader is replaced,
// unless it watches the lock that [Elector.Lock] returns; a [Job] does that by itself.
type Elector struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error // why, once it has ended
	lock  atomic.Pointer[holdfast.Lock]
}

// NewElector returns an Elector that campaigns for a job until it is closed. It takes
// the options of [elect.Run]. Why it has ended before, such as a wrong option,
// [Elector.IsLeader] and [Elector.Close] tell.
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

// IsLeader returns nil if this replica leads, and otherwise an error, which matches
// [ErrNotLeader] as long as it campaigns. It does no I/O.
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

// Lock returns the lock of the leader, if that is this replica: its token, and its
// context for what the leader does.
func (e *Elector) Lock() (*holdfast.Lock, bool) {
	lock := e.lock.Load()
	return lock, lock != nil && lock.Err() == nil
}

// Close ends the campaign, or hands over to another.
func (e *Elector) Close() error {
	e.stop()
	<-e.ended
	if errors.Is(e.err, context.Canceled) {
		return nil
	}
	return e.err
}
