//go:build !linux

package filelock

import "errors"

// events is for systems that tell what happens in a directory, by means that
// need no help from outside the standard library.
type events struct{}

func listen(string) (*events, error) { return nil, errors.ErrUnsupported }

func (*events) close() {}

func (*events) next() (map[string]bool, error) { return nil, errors.ErrUnsupported }
