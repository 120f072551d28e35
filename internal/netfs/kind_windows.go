package netfs

import (
	"path/filepath"
	"syscall"
	"unsafe"
)

var getDriveType = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDriveTypeW")

const driveRemote = 4

// Kind returns the kind of network file system of a directory, "" if the file system is
// local.
func Kind(dir string) string {
	root, err := syscall.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	if err != nil {
		return "unknown: " + err.Error()
	}
	if kind, _, _ := getDriveType.Call(uintptr(unsafe.Pointer(root))); kind == driveRemote {
		return "smb"
	}
	return ""
}
