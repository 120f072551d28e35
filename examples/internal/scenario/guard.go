package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Guards are the names of all guards, in the order of the table.
var Guards = []string{"none", "mutex", "lock", "row", "version", "unique", "upsert", "update"}

// Choose returns the guards of -guard, a list that is separated by commas. The list "all"
// stands for all guards that fit, and is the default of a comparison. Without one, Choose
// wants one guard. For each other guard there is a reason.
func Choose[F any](p *Play, list string, fit map[string]F, reasons map[string]string) ([]string, error) {
	names := slices.DeleteFunc(slices.Clone(Guards), func(name string) bool {
		_, ok := fit[name]
		return !ok
	})
	usual := "lock"
	if p.Compare {
		usual = "all"
	}
	chosen := strings.Split(cmp.Or(list, usual), ",")
	if chosen[0] == "all" {
		chosen = names
	}
	for _, name := range chosen {
		if reason := reasons[name]; reason != "" {
			return nil, fmt.Errorf("-guard %s does not fit: %s", name, reason)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-guard %s is none of %s", name, strings.Join(names, ", "))
		}
	}
	if len(chosen) > 1 && !p.Compare {
		return nil, errors.New("-guard has several names: want one, or -compare")
	}
	return chosen, nil
}
