// Package safefile opens files in folders where another user may have planted
// something. A symbolic link is not followed, a FIFO is not waited for, and
// [Handle.Inspect] refuses what is not a regular file with one name and the right
// owner. The package names the file in every error.
package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
)

// Reasons to refuse a file.
var (
	ErrSymlink   = errors.New("it is a symbolic link, which is not followed here; remove it if nobody needs it")
	ErrHardLink  = errors.New("it has a second name (a hard link), so that others may change it; remove it if nobody needs it")
	ErrIrregular = errors.New("it is not a regular file; remove it if nobody needs it")
)

// An OwnerError refuses a file or folder of another user.
type OwnerError struct{ User int }

func (e *OwnerError) Error() string { return fmt.Sprintf("it belongs to user %d", e.User) }

// Refused reports whether an error says that a file is refused, which stays so
// until somebody changes the file.
func Refused(err error) bool {
	var owner *OwnerError
	return errors.Is(err, ErrSymlink) || errors.Is(err, ErrHardLink) || errors.Is(err, ErrIrregular) || errors.As(err, &owner)
}

// Exposed reports whether everybody may remove or replace the files in a folder. On Windows
// the mode of a folder does not show the permissions.
func Exposed(folder fs.FileInfo) bool {
	return runtime.GOOS != "windows" && folder.Mode().Perm()&0o002 != 0 && folder.Mode()&fs.ModeSticky == 0
}

func failed(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }
