// Package identifier puts names into SQL.
package identifier

import (
	"fmt"
	"regexp"
	"strings"
)

// Quotes would allow more characters, but nobody needs them, and the allowed characters
// cannot be quoted wrongly. The length is compared apart: {0,47} would take a millisecond to
// compile whenever a program starts.
var valid = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Quote quotes a name, optionally with a schema and a dot before the name, and adds a
// suffix. The quote [ ends with ]. Schema and name have up to 48 letters, digits and _, and do not begin with a
// digit.
func Quote(name, suffix, quote string) (string, error) {
	end := quote
	if quote == "[" {
		end = "]"
	}
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if len(parts) > 2 || len(part) > 48 || !valid.MatchString(part) {
			return "", fmt.Errorf("%.99q cannot be a name in SQL here: want up to 48 letters, digits and _, the first not a digit, or two of these as schema.name", name)
		}
		if i == len(parts)-1 {
			part += suffix
		}
		parts[i] = quote + part + end
	}
	return strings.Join(parts, "."), nil
}
