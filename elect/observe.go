package elect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/shown"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// answerTime is how long Observe waits for the store.
const answerTime = 3 * time.Second

// Observe yields the leader of a job, at once and after every change: the leader known to
// the store, or the zero Holder if nobody leads. Observe asks the store each time that
// every, 10ms or more, has passed; 0 means each second. A shorter term may be missed.
// Between two terms, Observe may yield that nobody leads, or the next leader at once.
// Every value is a hint, and may be outdated already.
//
// An error means that the store did not answer. The error is yielded once, followed by
// the leader as soon as the store answers again. The sequence ends with ctx. The sequence
// also ends after an error that a retry cannot cure: an error that matches
// [errors.ErrUnsupported], from a store that cannot list holders, [holdfast.ErrInvalid]
// or [holdfast.ErrClosed].
func Observe(ctx context.Context, locks *holdfast.Locker, job string, every time.Duration) iter.Seq2[holdfast.Holder, error] {
	return func(yield func(holdfast.Holder, error) bool) {
		every = cmp.Or(every, time.Second)
		if err := bounds("every", every, shortestEvery); err != nil {
			yield(holdfast.Holder{}, fmt.Errorf("elect: observe %s: %w: %w", shown.Key(job), err, holdfast.ErrInvalid))
			return
		}
		o := observer{locks: locks, job: job}
		for o.look(ctx, yield) && rest.For(ctx, every) == nil {
		}
	}
}

// An observer remembers the last result that was yielded.
type observer struct {
	locks  *holdfast.Locker
	job    string
	leader holdfast.Holder
	known  bool // the last result was an answer
	failed bool // the last result was an error
}

// look yields changes, and reports whether to go on.
func (o *observer) look(ctx context.Context, yield func(holdfast.Holder, error) bool) bool {
	asked, cancel := context.WithTimeout(ctx, answerTime)
	holders, err := o.locks.Holders(asked, o.job)
	cancel()
	if ctx.Err() != nil {
		return false
	}
	if err = silence.For(ctx, err, answerTime); err != nil {
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

// leading returns the holder that does not wait.
func leading(holders []holdfast.Holder) holdfast.Holder {
	for _, h := range holders {
		if !h.Waiting {
			return h
		}
	}
	return holdfast.Holder{}
}
