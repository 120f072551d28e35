//go:build darwin || freebsd

package netfs

import "syscall"

const mountedLocally = 0x1000 // MNT_LOCAL

// Kind returns the kind of network file system of a directory, "" if the file system is
// local.
func Kind(dir string) string {
	var st syscall.Statfs_t
	if err := statfs(dir, &st); err != nil {
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
