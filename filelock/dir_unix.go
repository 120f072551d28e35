//go:build linux || darwin || freebsd

package filelock

import (
	"io/fs"
	"syscall"
)

// writable returns an error unless this process may make files in a directory.
func writable(dir string) error {
	const writeAndSearch = 2 | 1
	err := syscall.Access(dir, writeAndSearch)
	for err == syscall.EINTR {
		err = syscall.Access(dir, writeAndSearch)
	}
	if err != nil {
		return &fs.PathError{Op: "write to directory", Path: dir, Err: err}
	}
	return nil
}
