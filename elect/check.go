package elect

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Check lets a leader step down that is not fit to lead: ask is called before the
// function is, and then each time that every, 10ms or more, has passed. If it
// returns an error, or nothing for so long, the term ends with [ErrUnfit], and this
// process stands aside as after [ErrStepDown].
//
// It guards against a process that lives, and so keeps its lock, while its work is
// stuck: let the work note the time as it goes along, and ask see that this is
// not long ago.
//
// The context of ask ends when every has passed, and with the term. A call that
// ignores that is not followed by another before it has returned.
func Check(every time.Duration, ask func(ctx context.Context) error) Option {
	return Option{func(s *settings) {
		s.require(bounds("every of Check", every, shortestEvery))
		if ask == nil {
			s.require(errors.New("Check needs a function"))
		}
		s.check = &check{every: every, ask: ask, asking: make(chan struct{}, 1)}
	}}
}

// A check is a question that may not be answered.
type check struct {
	every  time.Duration
	ask    func(context.Context) error
	asking chan struct{} // full while a call has not returned
}

// fit returns an error that matches [ErrUnfit] if the check fails or does not
// answer.
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
