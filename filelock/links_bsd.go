//go:build darwin || freebsd

package filelock

import "syscall"

// links returns the number of names that an open file has.
func links(h handle) (uint64, error) {
	var st syscall.Stat_t
	err := fstat(h, &st)
	return uint64(st.Nlink), err
}
