package elect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
)

// answerTime is how long Observe waits for the store.
const answerTime = 3 * time.Second

// Observe yields who leads a job, at once and whenever that has changed: the leader
// as the store knows it, or the zero Holder if nobody leads. It asks the store each
// time that every, 10ms or more, has passed, so that it misses a term that was
// shorter; 0 means each second. What it yields is a hint, and may have changed since.
//
// An error means that the store did not answer. It is yielded once, and then the
// leader as soon as the store answers again. The sequence ends with ctx; it also ends
// after an error that asking again would not help: one that matches
// [errors.ErrUnsupported], from a store that cannot tell, [holdfast.ErrInvalid] or
// [holdfast.ErrClosed].
func Observe(ctx context.Context, locks *holdfast.Locker, job string, every time.Duration) iter.Seq2[holdfast.Holder, error] {
	return func(yield func(holdfast.Holder, error) bool) {
		every = cmp.Or(every, time.Second)
		if err := bounds("every", every, shortestEvery); err != nil {
			yield(holdfast.Holder{}, fmt.Errorf("elect: observe %q: %w: %w", job, err, holdfast.ErrInvalid))
			return
		}
		o := observer{locks: locks, job: job}
		for o.look(ctx, yield) && sleep(ctx, every) == nil {
		}
	}
}

// An observer remembers what it has yielded last.
type observer struct {
	locks  *holdfast.Locker
	job    string
	leader holdfast.Holder
	known  bool // an answer was yielded last
	failed bool // an error was
}

// look yields what has changed, and reports whether to go on.
func (o *observer) look(ctx context.Context, yield func(holdfast.Holder, error) bool) bool {
	asked, cancel := context.WithTimeout(ctx, answerTime)
	holders, err := o.locks.Holders(asked, o.job)
	cancel()
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		again := o.failed
		o.known, o.failed = false, true
		goesOn := !final(err) && !errors.Is(err, errors.ErrUnsupported)
		return (again && goesOn || yield(holdfast.Holder{}, err)) && goesOn
	}
	leader := leading(holders)
	if o.known && leader.ID == o.leader.ID && leader.Fence == o.leader.Fence {
		return true
	}
	o.leader, o.known, o.failed = leader, true, false
	return yield(leader, nil)
}

// leading returns the one who does not wait.
func leading(holders []holdfast.Holder) holdfast.Holder {
	for _, h := range holders {
		if !h.Waiting {
			return h
		}
	}
	return holdfast.Holder{}
}
