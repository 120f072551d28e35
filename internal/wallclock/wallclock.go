// Package wallclock detects that the wall clock of the machine was set. Many servers end leases by
// the wall clock, and programs measure by the clock that only runs.
package wallclock

import "time"

// SetBy returns by how much the wall clock was set since began, which [time.Now] returned: more
// than 0 if it was set ahead. Less than 10 ms, or than a thousandth of the time since, is 0: the two
// clocks may run at rates that differ a little.
func SetBy(began time.Time) time.Duration {
	now := time.Now()
	wall, passed := now.Round(0).Sub(began.Round(0)), now.Sub(began)
	by := wall - passed
	if by.Abs() < max(10*time.Millisecond, passed/1000) {
		return 0
	}
	return by
}
