package objects

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
)

// Options say how a Store uses its bucket.
type Options struct {
	Prefix string        // before the names of all objects; ends with a slash; "" means DefaultPrefix
	Look   time.Duration // between two reads of the first waiter; 0 means half a second
}

// DefaultPrefix stands before the names of all objects unless Options say otherwise.
const DefaultPrefix = "holdfast/"

const longestPrefix = 512

// Check returns a driver.ErrInvalid that names a bad option.
func (o Options) Check() error {
	return errors.Join(checkPrefix(o.prefix()), conditional.CheckLook(o.Look))
}

func (o Options) prefix() string { return cmp.Or(o.Prefix, DefaultPrefix) }

func checkPrefix(prefix string) error {
	bad := len(prefix) > longestPrefix || !utf8.ValidString(prefix) || strings.Contains("/"+prefix, "//") ||
		strings.Contains("/"+prefix, "/./") || strings.Contains("/"+prefix, "/../") || strings.ContainsFunc(prefix, unicode.IsControl)
	if bad || !strings.HasSuffix(prefix, "/") {
		return fmt.Errorf("%w: the prefix is %.80q (want at most %d bytes of UTF-8 with a slash at the end, such as %s)",
			driver.ErrInvalid, prefix, longestPrefix, DefaultPrefix)
	}
	return nil
}

// Prefix returns the prefix that the path of a URL names, "" for the default.
func Prefix(path string) string {
	if prefix := strings.Trim(path, "/"); prefix != "" {
		return prefix + "/"
	}
	return ""
}
