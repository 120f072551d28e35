package elect

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Check lets an unfit leader step down. Check calls ask before the leader's function
// starts, and then at the interval every, 10ms or more. If ask returns an error, or does not
// return within the interval, the term ends with [ErrUnfit], and this process stands aside
// as after [ErrStepDown].
//
// Check guards against a live process that keeps its lock while its work is stuck: let the
// work record the time as it proceeds, and let ask verify that the recorded time is recent.
//
// The context of ask ends when every has passed, and with the term. If a call ignores the
// context, ask is not called again before the call has returned.
func Check(every time.Duration, ask func(ctx context.Context) error) Option {
	return Option{func(s *settings) {
		s.require(bounds("every of Check", every, shortestEvery))
		if ask == nil {
			s.require(errors.New("Check needs a function"))
		}
		s.check = &check{every: every, ask: ask, asking: make(chan struct{}, 1)}
	}}
}

// A check calls ask, which may never return.
type check struct {
	every  time.Duration
	ask    func(context.Context) error
	asking chan struct{} // full while a call has not returned
}

// fit returns an error that matches [ErrUnfit] if the check fails or does not answer.
func (c *check) fit(ctx context.Context) error {
	if c == nil {
		return nil
	}
	if err := c.answer(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return nil
}

func (c *check) answer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.every)
	defer cancel()
	select {
	case c.asking <- struct{}{}:
	default:
		return errors.New("the last check has not returned yet")
	}
	answer := make(chan error, 1)
	go func() {
		err := c.ask(ctx)
		<-c.asking
		answer <- err
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer within %v", c.every)
	}
}
