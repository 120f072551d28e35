package elect

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// An Option changes one call of [Run].
type Option struct {
	set func(*settings)
}

type settings struct {
	lock    []holdfast.LockOption
	check   *check // nil without a check
	maxTerm time.Duration
	grace   time.Duration
	report  func(error)
	errs    []error
}

const (
	longest       = 366 * 24 * time.Hour
	shortestEvery = 10 * time.Millisecond
)

// TTL sets how long candidates wait for a leader that has fallen silent, from 100ms to 24h,
// in place of the TTL in the options of the Locker.
func TTL(d time.Duration) Option { return lockOption(holdfast.TTL(d)) }

// Note describes this candidate for people, in up to 1,024 bytes of UTF-8. [Observe] shows
// the note of the leader.
func Note(text string) Option { return lockOption(holdfast.Note(text)) }

// MaxTerm lets a leader hand over, as by [ErrStepDown], after leading for d, which is above
// 0 and at most 366 days. Without MaxTerm, a term has no time limit.
func MaxTerm(d time.Duration) Option {
	return Option{func(s *settings) {
		s.require(bounds("MaxTerm", d, 1))
		s.maxTerm = d
	}}
}

// Grace sets how long the lock is kept if the function has not returned after its context
// ended, from 0 to 366 days. The default is 15 seconds. A lost lock is not kept.
func Grace(d time.Duration) Option {
	return Option{func(s *settings) {
		s.require(bounds("Grace", d, 0))
		s.grace = d
	}}
}

// Report sets a function that receives the reason why a term ended, or why the lock could
// not be acquired, each time that Run continues instead of returning the reason. Report
// also receives [ErrStuck] when the Grace of a function is over. The report function must
// be quick, and may be called from another goroutine while the leader's function runs.
func Report(report func(error)) Option {
	return Option{func(s *settings) {
		if report != nil {
			s.report = report
		}
	}}
}

func lockOption(o holdfast.LockOption) Option {
	return Option{func(s *settings) { s.lock = append(s.lock, o) }}
}

func (s *settings) require(err error) {
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

func bounds(name string, d, low time.Duration) error {
	if d < low || d > longest {
		return fmt.Errorf("%s is %v; it must be from %v to %v", name, d, low, longest)
	}
	return nil
}

// resolve combines the options.
func resolve(opts []Option) settings {
	s := settings{grace: 15 * time.Second, report: func(error) {}}
	for _, o := range opts {
		if o.set != nil {
			o.set(&s)
		}
	}
	return s
}
