//go:build darwin || freebsd

package filelock

import "syscall"

const mountedLocally = 0x1000 // MNT_LOCAL

// network returns the kind of network file system on which a directory is, or
// nothing if it is local.
func network(dir string) string {
	var st syscall.Statfs_t
	if err := retry(func() error { return syscall.Statfs(dir, &st) }); err != nil {
		return "unknown: " + err.Error()
	}
	if st.Flags&mountedLocally != 0 {
		return ""
	}
	var name []byte
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	return string(name)
}
