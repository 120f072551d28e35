package main

import (
	"context"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// commit tells what was measured, where this runs in a checkout: "go run" leaves it
// out of the program.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return " Commit " + strings.TrimSpace(string(text)) + "."
}

// versions tells those of modules that are in this program.
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
