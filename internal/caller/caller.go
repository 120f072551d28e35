// Package caller holds what package holdfast shares with packages that lock without it, for
// example inside a transaction of the caller: two errors, and the check of a key.
package caller

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
)

// The errors that callers act on. Package holdfast exports these errors under the same
// names. A Store never returns them: the refusal of a Store is the zero [driver.Grant].
var (
	ErrHeld     = errors.New("held by another")
	ErrDeadlock = errors.New("would wait for itself")
)

// CheckKey returns an error for an invalid key, nil for a valid key. CheckKey is for
// packages that take keys from callers themselves; the core has checked the keys of claims.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("the key is empty; it must have 1 to %d bytes of UTF-8", driver.MaxKey)
	case len(key) > driver.MaxKey:
		return fmt.Errorf("the key has %d bytes; it must have at most %d", len(key), driver.MaxKey)
	case !utf8.ValidString(key):
		return errors.New("the key is not valid UTF-8")
	}
	return nil
}
