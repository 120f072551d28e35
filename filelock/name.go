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

// mayName reports whether a key that begins with prefix could have this file.
// It spares reading most of the others.
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
