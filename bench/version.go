package main

import (
	"runtime/debug"
	"slices"
	"strings"
)

// versions returns the versions of modules in this program.
func versions(modules []string) (all []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range info.Deps {
		if slices.Contains(modules, m.Path) {
			all = append(all, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return all
}
