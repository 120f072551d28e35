package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// StoreFailure is the exit after a failed call of a store.
func StoreFailure(err error) error {
	err = Bare(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrInvalid), errors.Is(err, errors.ErrUnsupported), errors.Is(err, holdfast.ErrNotFenced):
		return Failure(ExitUsage, err)
	case errors.Is(err, context.DeadlineExceeded):
		return Failure(ExitUnreachable, fmt.Errorf("the store did not answer: %w", err))
	}
	return Failure(ExitUnreachable, err)
}

// Bare strips the operation from an error, for a line that names the operation.
func Bare(err error) error {
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
