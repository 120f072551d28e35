//go:build !unix

package guarding

import (
	"errors"
	"os"
)

func stop(*os.Process) error    { return errors.ErrUnsupported }
func carryOn(*os.Process) error { return errors.ErrUnsupported }
