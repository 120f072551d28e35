//go:build unix

package cli

import (
	"os"
	"syscall"
	"unsafe"
)

func isTerminal(f *os.File) bool {
	var size [4]uint16
	return Ioctl(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) == nil
}

// Ioctl asks something of a terminal.
func Ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
