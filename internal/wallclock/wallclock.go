// Package wallclock detects that the wall clock of the machine was set. Many servers end leases by
// the wall clock, and programs measure by the clock that only runs.
package wallclock

import "time"

// Set reports whether the wall clock was set since began, which [time.Now] returned.
func Set(began time.Time) bool {
	now := time.Now()
	wall, passed := now.Round(0).Sub(began.Round(0)), now.Sub(began)
	return (wall - passed).Abs() > time.Millisecond
}
