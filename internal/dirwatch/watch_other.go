//go:build !linux

package dirwatch

import (
	"errors"
	"time"
)

// A Watch is for systems that report changes in a directory without help from outside the
// standard library.
type Watch struct{}

const Closed, Written Events = 0, 1

func New(string, Events) (*Watch, error) { return nil, errors.ErrUnsupported }

func (*Watch) Close() {}

func (*Watch) Limit(time.Time) error { return errors.ErrUnsupported }

func (*Watch) Next() (map[string]bool, error) { return nil, errors.ErrUnsupported }
