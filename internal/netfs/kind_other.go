//go:build !linux && !darwin && !freebsd && !windows

package netfs

// Kind returns nothing: this system's file systems are not known.
func Kind(string) string { return "" }
