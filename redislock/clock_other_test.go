//go:build !linux

package redislock_test

import "time"

// sinceBoot is a time that all processes of this machine can compare, as long
// as nobody sets it.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
