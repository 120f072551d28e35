package main

import (
	"context"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// commit names the commit under test, if the command runs in a checkout. "go run" does not
// record the commit in the program.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return " Commit " + strings.TrimSpace(string(text)) + "."
}

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
