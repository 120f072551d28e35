package build

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for _, c := range []struct {
		main string
		more []debug.BuildSetting
		want string
	}{
		{"", nil, "devel"},
		{"(devel)", []debug.BuildSetting{commit}, "devel 0123456789ab"},
		{"v1.2.0", []debug.BuildSetting{{Key: "vcs.modified", Value: "false"}, commit}, "v1.2.0 0123456789ab"},
		{"v1.2.0", []debug.BuildSetting{commit, {Key: "vcs.modified", Value: "true"}}, "v1.2.0 0123456789ab+"},
		{"v1.2.0", []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}, "v1.2.0"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.main}, Settings: c.more}
		if got := version(info); got != c.want {
			t.Errorf("%q with %v is %q, want %q", c.main, c.more, got, c.want)
		}
	}
}

// The linker's value counts if Go has recorded nothing.
func TestLinkedCommit(t *testing.T) {
	commit = "fedcba987654+"
	defer func() { commit = "" }()
	if got := version(&debug.BuildInfo{}); got != "devel fedcba987654+" {
		t.Errorf("without a commit of its own it is %q", got)
	}
	noted := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}
	if got := version(&debug.BuildInfo{Settings: noted}); got != "devel 0123456789ab" {
		t.Errorf("with a commit of its own it is %q", got)
	}
}
