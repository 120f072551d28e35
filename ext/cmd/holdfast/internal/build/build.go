// Package build tells of what a program was built.
package build

import "runtime/debug"

// commit is set by the linker, by who builds where Go does not note the commit, as in
// a second worktree.
var commit string

// Version returns the version and the commit, as far as they are known, of the
// program that runs: "v1.2.0 0123456789ab", or "devel" if neither is. A commit with +
// had changes that are in none.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version(&debug.BuildInfo{})
	}
	return version(info)
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
