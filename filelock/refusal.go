package filelock

import (
	"errors"
	"io/fs"
	"runtime"
	"syscall"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// A permanent error stays until the file, the directory or the options change.
type permanent struct{ error }

// A refusal is the error of an Acquire that has written nothing. A refusal matches
// driver.ErrUnwritten and, if the error is permanent, driver.ErrInvalid, in the words
// of the error alone.
type refusal struct {
	error
	permanent bool
}

func (r refusal) Is(target error) bool {
	return target == driver.ErrUnwritten || r.permanent && target == driver.ErrInvalid
}

func (r refusal) Unwrap() error { return r.error }

func (s *Store) refusal(err error) error {
	var stays permanent
	return refusal{err, errors.As(err, &stays) || safefile.Refused(err) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) || s.forbidden(err)}
}

// forbidden reports whether the permissions of a file forbid its use for good. The file of
// a different user may be about to get its mode. Windows reports the same error for a file
// about to be removed.
func (s *Store) forbidden(err error) bool {
	return errors.Is(err, fs.ErrPermission) && s.opts.Mode == private && runtime.GOOS != "windows"
}
