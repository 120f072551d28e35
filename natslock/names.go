package natslock

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// DefaultStream is the name of the stream unless Options name another.
const DefaultStream = "holdfast"

const longestStream = 64

// checkStream refuses a name that cannot be a word of a subject.
func checkStream(name string) error {
	if name == "" || len(name) > longestStream || strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return fmt.Errorf("%w: the stream is named %.80q (want 1 to %d letters, digits, - and _)", driver.ErrInvalid, name, longestStream)
	}
	return nil
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// Subjects of a stream: of the records, and of the reports of changes.
func (s *register) records() string { return s.stream + ".record." }
func (s *register) changes() string { return s.stream + ".change." }

// word is a key as one word of a subject. Different keys have different words: every other
// byte is an = and two hexadecimal digits.
func word(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; plain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}
