//go:build !linux

package filelock

import "runtime"

// yield lets other goroutines run for a moment.
func yield() { runtime.Gosched() }
