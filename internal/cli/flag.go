package cli

import (
	"fmt"
	"maps"
	"slices"
)

// WrongFlag describes the values of a flag of some kind, such as "duration", after a
// wrong value.
func WrongFlag(name, value, kind string) error {
	want := "true or false"
	switch kind {
	case "duration":
		want = "a duration, such as 90s or 2h30m"
	case "int":
		want = "a whole number"
	case "uint64":
		want = "a number of digits only"
	}
	return fmt.Errorf("--%s %q must be %s", name, value, want)
}

// RefuseEmpty refuses empty flags: a script with an unset variable does not mean the
// default. names has the remedy for each flag.
func RefuseEmpty(command string, names map[string]string, empty func(flag string) bool) error {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		if empty(flag) {
			return Usage(command, "--%s is empty: %s", flag, names[flag])
		}
	}
	return nil
}

// OwnFiles is the remedy for an empty --store of a command with files as the default.
const OwnFiles = "name a store, or leave it out for files that are removed at the end"
