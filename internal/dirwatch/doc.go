// Package dirwatch tells what happens to the files of a directory, where the
// system does.
package dirwatch

import "errors"

// Events are what to tell of: [Closed] or [Written].
type Events uint32

// ErrGone says that the directory was removed or moved away. A new Watch may
// find another in its place.
var ErrGone = errors.New("the directory is no longer watched")
