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
	check   *check // nil if there is none
	maxTerm time.Duration
	grace   time.Duration
	report  func(error)
	errs    []error
}

const (
	longest       = 366 * 24 * time.Hour
	shortestEvery = 10 * time.Millisecond
)

// TTL sets how long a leader that has fallen silent is waited for, from 100ms to
// 24h, in place of the one in the options of the Locker.
func TTL(d time.Duration) Option { return lockOption(holdfast.TTL(d)) }

// Note tells people about this candidate, in up to 1,024 bytes of UTF-8. [Observe]
// shows it of the leader.
func Note(text string) Option { return lockOption(holdfast.Note(text)) }

// MaxTerm lets a leader hand over, as by [ErrStepDown], when it has led for d, which
// is above 0 and at most 366 days. Without it a term has no end of its own.
func MaxTerm(d time.Duration) Option {
	return Option{func(s *settings) {
		s.require(bounds("MaxTerm", d, 1))
		s.maxTerm = d
	}}
}

// Grace sets how long the lock is kept for a function that has not returned though
// its context has ended, from 0 to 366 days. The default is 15 seconds. A lock that
// is lost is not kept.
func Grace(d time.Duration) Option {
	return Option{func(s *settings) {
		s.require(bounds("Grace", d, 0))
		s.grace = d
	}}
}

// Report sets a function that is told why a term ended, or why the lock could not
// be had, each time that Run does not return it but goes on. It is told too, with
// [ErrStuck], when the Grace of a function is over. It must be quick, and may be
// called from another goroutine while the function runs.
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

// resolve adds up the options.
func resolve(opts []Option) settings {
	s := settings{grace: 15 * time.Second, report: func(error) {}}
	for _, o := range opts {
		if o.set != nil {
			o.set(&s)
		}
	}
	return s
}
