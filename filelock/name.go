package filelock

import (
	"strings"

	"github.com/holdfast-go/holdfast/internal/filename"
)

const (
	lockPrefix    = "lock-"
	sessionPrefix = "session-"

	sessionID = 16 // letters of a session's id
)

// fileName is the name of the file for a key.
func fileName(key string) string { return filename.Of(lockPrefix, key) }

// mayName reports whether the file may be of a key that begins with prefix. The check
// spares reading most other files.
func mayName(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, lockPrefix)
	if !ok {
		return false
	}
	want := filename.Escape(prefix)
	if head, _, hashed := strings.Cut(rest, "~"); hashed {
		n := min(len(head), len(want))
		return head[:n] == want[:n]
	}
	return strings.HasPrefix(rest, want)
}

func isSessionID(id string) bool { return len(id) == sessionID && filename.Escape(id) == id }
