//go:build !linux

package filelock

import "runtime"

// yield lets others run for a moment.
func yield() { runtime.Gosched() }
