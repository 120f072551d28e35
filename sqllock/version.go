package sqllock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// needs are the oldest versions that will do, by the word that the version of a
// product has in it. The first that matches counts.
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

// outdated returns the oldest version that will do if this one will not. One
// that it cannot read will do.
func (n needs) outdated(version string) string {
	for _, need := range n {
		if !strings.Contains(version, need.product) {
			continue
		}
		// MariaDB says 5.5.5 first to those who know only MySQL.
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
