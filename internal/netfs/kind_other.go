//go:build !linux && !darwin && !freebsd && !windows

package netfs

// Kind returns "": the file systems of this system are unknown.
func Kind(string) string { return "" }
