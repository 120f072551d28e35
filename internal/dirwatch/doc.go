// Package dirwatch reports changes of the files of a directory, on systems that report
// changes.
package dirwatch

import "errors"

// Events are the changes to report: [Closed] or [Written].
type Events uint32

// ErrGone says that the directory was removed or moved away. A new Watch may find a new
// directory in its place.
var ErrGone = errors.New("the directory is no longer watched")
