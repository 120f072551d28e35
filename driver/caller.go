package driver

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// The errors that callers act on. Package holdfast exports these errors under the same
// names. A package that locks without package holdfast, for example inside a transaction
// of the caller, returns them too. A Store never returns them: the refusal of a Store is
// the zero [Grant].
var (
	ErrHeld     = errors.New("held by another")
	ErrDeadlock = errors.New("would wait for itself")
)

// CheckKey returns an error for an invalid key, nil for a valid key. CheckKey is for
// packages that take keys from callers themselves; the core has checked the keys of claims.
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
