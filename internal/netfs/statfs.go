//go:build linux || darwin || freebsd

package netfs

import "syscall"

func statfs(dir string, st *syscall.Statfs_t) error {
	for {
		if err := syscall.Statfs(dir, st); err != syscall.EINTR {
			return err
		}
	}
}
