package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Guards are the names of the guards, in the order of the table.
var Guards = []string{"none", "mutex", "lock", "row", "version", "unique", "upsert", "update"}

// Choose returns the guards of -guard, a list that is separated by commas. A comparison
// plays the whole list, by default "all", which stands for every guard that fits. Without a
// comparison the list names a single guard, by default lock. The reasons say why the
// remaining guards do not fit.
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
	if slices.Equal(chosen, []string{"all"}) {
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
