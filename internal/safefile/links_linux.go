package safefile

import (
	"runtime"
	"syscall"
	"unsafe"
)

const (
	atEmptyPath = 0x1000
	statxNlink  = 4
)

var emptyPath [1]byte

// Links returns the number of names that an open file has.
//
// Links requests only the link count. If the change time of a file was requested before,
// the kernel stamps the next write finely, and pays for a change of the inode, which is
// otherwise made once per tick. With fstat here, a critical section takes half as long
// again.
func (h Handle) Links() (uint64, error) {
	if number := statx(); number != 0 {
		var st [32]uint64 // struct statx; the link count begins the third
		_, _, errno := syscall.Syscall6(number, uintptr(h), uintptr(unsafe.Pointer(&emptyPath)),
			atEmptyPath, statxNlink, uintptr(unsafe.Pointer(&st)), 0)
		if errno == 0 {
			return uint64(*(*uint32)(unsafe.Pointer(&st[2]))), nil
		}
	}
	// An old kernel, a filter of system calls, or something that fstat tells.
	var st syscall.Stat_t
	err := fstat(h, &st)
	return uint64(st.Nlink), err
}

// statx is the number of the system call, 0 where we do not know it.
func statx() uintptr {
	switch runtime.GOARCH {
	case "amd64":
		return 332
	case "arm64", "riscv64", "loong64":
		return 291
	case "386", "ppc64", "ppc64le":
		return 383
	case "arm":
		return 397
	case "s390x":
		return 379
	}
	return 0
}
