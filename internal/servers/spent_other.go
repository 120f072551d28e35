//go:build !linux

package servers

import (
	"errors"
	"time"
)

// Spent needs the /proc of Linux.
func Spent([]int) (time.Duration, error) { return 0, errors.ErrUnsupported }
