//go:build !linux && !darwin && !freebsd && !windows

package flock

import "errors"

// Try fails: the locks of this system are unknown.
func Try(uintptr, bool) (bool, error) { return false, errors.ErrUnsupported }

// Unlock does nothing.
func Unlock(uintptr) {}
