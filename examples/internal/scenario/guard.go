package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// Guards are the names of all guards, in the order of the table.
var Guards = []string{"none", "mutex", "lock", "row", "version", "unique", "upsert", "update"}

// Choose returns the guards of a list that is separated by commas. The list "all" stands
// for all guards that fit. For each other guard there is a reason.
func Choose[F any](list string, fit map[string]F, reasons map[string]string) (names []string, err error) {
	for _, name := range Guards {
		if _, ok := fit[name]; ok {
			names = append(names, name)
		}
	}
	if list == "all" {
		return names, nil
	}
	chosen := strings.Split(list, ",")
	for _, name := range chosen {
		if reason := reasons[name]; reason != "" {
			return nil, fmt.Errorf("-guard %s does not fit: %s", name, reason)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-guard %s is none of %s", name, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}
