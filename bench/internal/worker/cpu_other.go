//go:build !unix

package worker

import (
	"errors"
	"time"
)

func cpu() (time.Duration, error) { return 0, errors.ErrUnsupported }
