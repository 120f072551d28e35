//go:build !linux && !darwin && !freebsd && !windows

package flock

import "errors"

// Try fails: nothing is known of the locks of this system.
func Try(uintptr, bool) (bool, error) { return false, errors.ErrUnsupported }

// Unlock does nothing.
func Unlock(uintptr) {}
