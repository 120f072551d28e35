package driver

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// What callers act on, whoever tells them: package holdfast has these errors
// under the same names, and a package that locks without it, such as inside a
// transaction of the caller, returns them too. No Store does: its refusal is
// the zero [Grant].
var (
	ErrHeld     = errors.New("held by another")
	ErrDeadlock = errors.New("would wait for itself")
)

// CheckKey says what is wrong with a key, for packages that take keys from
// callers themselves. The core has checked those of claims.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("the key is empty; it must have 1 to %d bytes of UTF-8", MaxKey)
	case len(key) > MaxKey:
		return fmt.Errorf("the key has %d bytes; it must have at most %d", len(key), MaxKey)
	case !utf8.ValidString(key):
		return errors.New("the key is not valid UTF-8")
	}
	return nil
}
