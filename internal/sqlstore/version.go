package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// needs are the oldest supported versions, by the word that identifies a product in its
// version. The first match counts.
type needs []struct{ product, oldest string }

// old fails if the server is too old.
func (s *Store) old(ctx context.Context) error {
	version, err := only(ctx, s, s.dialect.version, true, nil, column[string])
	if err != nil {
		return err
	}
	if oldest := s.dialect.needs.outdated(version); oldest != "" {
		return fmt.Errorf("%w: the server is %s %s, which is too old: it needs to be %s or later", driver.ErrInvalid, s.dialect, version, oldest)
	}
	return nil
}

// outdated returns the oldest supported version if version is older, otherwise "". A
// version that outdated cannot read counts as supported.
func (n needs) outdated(version string) string {
	for _, need := range n {
		if !strings.Contains(version, need.product) {
			continue
		}
		// MariaDB puts 5.5.5 first for clients that know only MySQL.
		have, want := numbers(strings.TrimPrefix(version, "5.5.5-")), numbers(need.oldest)
		for i, least := range want {
			if i >= len(have) || have[i] > least {
				break
			}
			if have[i] < least {
				return strings.TrimSpace(need.product + " " + need.oldest)
			}
		}
		return ""
	}
	return ""
}

// numbers returns 10, 11 and 19 of "10.11.19-MariaDB".
func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		digits := part
		if end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = part[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		if list = append(list, n); digits != part {
			break
		}
	}
	return list
}
