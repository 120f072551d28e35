//go:build !linux

package boottime

import "time"

const trustsWallClock = true

func asleep() time.Duration { return 0 }

// measure takes every forward move of the wall clock against the monotonic clock for a
// suspend. So a step of the wall clock can end a lease early, which is the safe error. A
// step can never extend a lease, because moves back do not count.
func (d *detector) measure(last *reading, ahead time.Duration) time.Duration {
	return last.slept + max(0, ahead-last.ahead)
}
