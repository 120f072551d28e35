// Package build reports the version of a program.
package build

import (
	"runtime/debug"
	"slices"
)

// commit is set by the linker, for builds where Go does not note the commit, as in a second
// worktree.
var commit string

// Version returns the version and the commit of the running program, if known, such as
// "v1.2.0 0123456789ab", or "devel" if both are unknown. A commit with + had uncommitted
// changes.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version(&debug.BuildInfo{})
	}
	return version(info)
}

// Race reports whether the race detector watches the running program. A test passes the
// flag on when building a second program, so the builds share the compiled packages.
func Race() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func version(info *debug.BuildInfo) string {
	release, revision, changed := "devel", commit, ""
	if v := info.Main.Version; v != "" && v != "(devel)" {
		release = v
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if revision == "" {
		return release
	}
	return release + " " + revision + changed
}
