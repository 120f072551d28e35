//go:build !unix

package stores

import (
	"errors"
	"os"
)

func lockFile(*os.File) error { return errors.ErrUnsupported }
