//go:build !linux && !darwin && !freebsd && !windows

package safefile

import (
	"errors"
	"io/fs"
)

// A Handle is an open file. There is no valid Handle: the files of this system are unknown.
type Handle int

// Open fails.
func Open(path string, _ bool) (Handle, error) { return Create(path, 0) }

// Create fails.
func Create(path string, _ fs.FileMode) (Handle, error) {
	return -1, failed("open", path, errors.ErrUnsupported)
}

// Close does nothing.
func (h Handle) Close() {}

// Inspect fails.
func (h Handle) Inspect(path string, _ bool) (struct{}, error) {
	return struct{}{}, failed("stat", path, errors.ErrUnsupported)
}

// Owner is not known.
func Owner(string, fs.FileInfo) error { return nil }
