// Package conditional has what stores share on services that write a record only if its version is
// as expected: the proof that the service keeps this condition, the clock of the service, and a
// client that reads each answer to its end.
package conditional

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// A Proof tests whether a service keeps the conditions of writes. The first test creates a record
// that stays. So every later test is three writes that the service refuses.
type Proof struct{ passed atomic.Bool }

// Passed reports whether the service has passed, and need not be tested again.
func (p *Proof) Passed() bool { return p.passed.Load() }

// Writes are the writes of a [Proof].
type Writes struct {
	// Put writes a record if the record has the given version; "" means that there must be no
	// record. The errors are those of [caslock.Register].
	Put func(ctx context.Context, name, version string) error

	Present string // the name of the record that stays
	Missing string // a name that has never been there, not even as the remains of an earlier test
	Unused  string // a version that no record has had

	Service string // for errors: "the bucket s3://b"
	Record  string // for errors, with its article: "an object"
	Advice  string // for errors: "Use a service with conditional writes"
}

// Of returns [driver.ErrInvalid] if the service carries out a write whose condition does not hold.
func (p *Proof) Of(ctx context.Context, w Writes) error {
	err := w.Put(ctx, w.Present, "")
	if err != nil && !errors.Is(err, caslock.ErrConflict) {
		return err
	}
	created := err == nil
	tests := []struct {
		name, version, promise string
		skip                   bool
	}{
		{w.Present, "", "it created " + w.Record + " that was there", !created},
		{w.Present, w.Unused, "it replaced " + w.Record + " that had another version", false},
		{w.Missing, w.Unused, "it replaced " + w.Record + " that was not there", false},
	}
	errs := make([]error, len(tests))
	var all sync.WaitGroup
	for i, t := range tests {
		if !t.skip {
			all.Go(func() { errs[i] = w.Put(ctx, t.name, t.version) })
		}
	}
	all.Wait()
	var broken []string
	for i, t := range tests {
		switch err := errs[i]; {
		case t.skip || errors.Is(err, caslock.ErrConflict):
		case err != nil:
			return err
		default:
			broken = append(broken, t.promise)
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("%w: %s ignores the conditions of writes, so its locks would have several holders: %s. %s",
			driver.ErrInvalid, w.Service, strings.Join(broken, "; "), w.Advice)
	}
	p.passed.Store(true)
	return nil
}

// A Clock is the clock of a process, or that of a service, if the clock of the process is behind.
type Clock struct{ ahead atomic.Int64 }

// Note takes the time of an answer of the service. Services tell whole seconds, and an answer
// takes its time, so only a clock of the process that is behind is certain.
func (c *Clock) Note(answered time.Time) { c.ahead.Store(max(0, int64(time.Until(answered)))) }

// Time returns the time.
func (c *Clock) Time() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Now implements [caslock.Clock].
func (c *Clock) Now(context.Context) (time.Time, error) { return c.Time(), nil }

// ShortestLook and LongestLook bound the pause between two reads of the first waiter.
const (
	ShortestLook = 10 * time.Millisecond
	LongestLook  = time.Minute
)

// CheckLook returns [driver.ErrInvalid] if the option Look of a store is too short.
func CheckLook(look time.Duration) error {
	if look != 0 && look < ShortestLook {
		return fmt.Errorf("%w: Look is %v (want %v or longer, or 0 for half a second)", driver.ErrInvalid, look, ShortestLook)
	}
	return nil
}
