//go:build darwin || freebsd

package safefile

import "syscall"

// Links returns the number of names that an open file has.
func (h Handle) Links() (uint64, error) {
	var st syscall.Stat_t
	err := fstat(h, &st)
	return uint64(st.Nlink), err
}
