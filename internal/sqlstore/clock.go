package sqlstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// machine names the row of this run of the machine.
var machine = sync.OnceValues(func() (row string, certain bool) {
	name, certain := boottime.Machine()
	return bootPrefix + strings.Join(strings.Fields(strings.ReplaceAll(name, "\x00", " ")), " "), certain
})

// bootPrefix begins no key: in escaped keys a backslash precedes a backslash or a 0.
const bootPrefix = `\boot `

var errNoBoot = errors.New("the row that keeps when this machine was started cannot be written")

// now is the clock for an engine without a clock, in microseconds since 1970, once
// startClock has run. All processes are on one machine. So the clock is the machine's
// monotonic clock, counted from the wall clock's time when the table was first used since
// the machine's start. A row keeps that time. After a restart of the machine, leases go
// on to expire by the wall clock, but time does not go back behind any granted time.
//
// If a run of the machine has no name, now is the wall clock.
func (s *Store) now() int64 {
	t := time.Now()
	if _, certain := machine(); !certain {
		return t.UnixMicro()
	}
	return s.began.Load() + boottime.SinceBoot(t).Microseconds()
}

// startClock reads when this run of the machine began, unless already known.
func (s *Store) startClock(ctx context.Context) error {
	row, certain := machine()
	if !certain || s.began.Load() != 0 {
		return nil
	}
	began, err := s.boot(ctx, row)
	s.began.Store(began)
	return err
}

// boot returns the time at which this run of the machine began, as measured by the first
// caller.
func (s *Store) boot(ctx context.Context, row string) (began int64, err error) {
	for range 2 {
		known, err := query(ctx, s, readBoot, false, []any{row}, column[int64])
		if err != nil {
			return 0, err
		}
		if len(known) > 0 {
			return known[0], nil
		}
		now := time.Now()
		if _, err = s.exec(ctx, writeBoot, false, row, now.UnixMicro(), boottime.SinceBoot(now).Microseconds()); err != nil {
			return 0, err
		}
	}
	return 0, errNoBoot
}
