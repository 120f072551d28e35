// Package shown formats untrusted text for errors: the keys of callers, who may have passed
// the whole body of a request as the key, and the notes of holders.
package shown

import (
	"fmt"
	"time"
)

// longest is how many bytes of a key are shown: the length of the longest valid key.
const longest = 512

// Text quotes a text that people have written about a lock, and cuts a long text.
func Text(text string) string {
	if short := fmt.Sprintf("%.128s", text); short != text {
		return fmt.Sprintf("%q...", short)
	}
	return fmt.Sprintf("%q", text)
}

// Key quotes a key. A key that is too long to be valid is cut, and its length added.
func Key(key string) string {
	if len(key) > longest {
		return fmt.Sprintf("%.64q... (%d bytes)", key, len(key))
	}
	return fmt.Sprintf("%q", key)
}

// Seconds converts a time for JSON, to the millisecond: the float is written with three
// decimals at most.
func Seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}
