package filelock

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	lockPrefix    = "lock-"
	sessionPrefix = "session-"

	// maxName is well under what file systems take: 255 bytes mostly, 143
	// where names are encrypted.
	maxName  = 128
	headSize = 40 // readable bytes of a key whose name would be too long

	sessionID = 16 // letters of a session's id
)

const lowerHex = "0123456789abcdef"

// fileName is the name of the file for a key. No two keys share one, also
// where upper and lower case are the same; it never leads out of its directory
// and means nothing to a shell.
func fileName(key string) string {
	name := lockPrefix + escape(key)
	if len(name) <= maxName {
		return name
	}
	// escape never makes a tilde, so the short names and these cannot meet.
	sum := sha256.Sum256([]byte(key))
	return name[:len(lockPrefix)+headSize] + "~" + hex.EncodeToString(sum[:])
}

// mayName reports whether a key that begins with prefix could have this file.
// It spares reading most of the others.
func mayName(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, lockPrefix)
	if !ok {
		return false
	}
	want := escape(prefix)
	if head, _, hashed := strings.Cut(rest, "~"); hashed {
		n := min(len(head), len(want))
		return head[:n] == want[:n]
	}
	return strings.HasPrefix(rest, want)
}

// escape keeps the bytes that are the same everywhere and writes the others,
// capitals and dots among them, as a percent sign and two hex digits.
func escape(key string) string {
	plain := 0
	for plain < len(key) && isPlain(key[plain]) {
		plain++
	}
	if plain == len(key) {
		return key
	}
	b := make([]byte, plain, len(key)+2*(len(key)-plain))
	copy(b, key)
	for _, c := range []byte(key[plain:]) {
		if isPlain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', lowerHex[c>>4], lowerHex[c&15])
		}
	}
	return string(b)
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

func isSessionID(id string) bool {
	for i := range len(id) {
		if !isPlain(id[i]) {
			return false
		}
	}
	return len(id) == sessionID
}
