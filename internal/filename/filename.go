// Package filename makes names of files from keys.
package filename

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	// Max is the length of the longest name, in bytes. Max is well under the limit of file
	// systems: 255 mostly, 143 if names are encrypted.
	Max = 128

	headSize = 40 // readable bytes of a key whose name would be too long
)

const lowerHex = "0123456789abcdef"

// Of returns the name of the file for a key, with a prefix that needs no escaping. Two keys
// never share a name, even if the file system ignores case. A name never leads out of its
// directory and means nothing to a shell.
func Of(prefix, key string) string {
	name := prefix + Escape(key)
	if len(name) <= Max {
		return name
	}
	// Escape never makes a tilde, so short names never equal these names.
	sum := sha256.Sum256([]byte(key))
	return name[:len(prefix)+headSize] + "~" + hex.EncodeToString(sum[:])
}

// Start returns what the names of all keys that begin with start begin with.
func Start(start string) string {
	name := Escape(start)
	return name[:min(len(name), headSize)]
}

// Escape keeps the bytes that are the same everywhere and writes the other bytes, including
// capitals and dots, as a percent sign and two hex digits.
func Escape(key string) string {
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
