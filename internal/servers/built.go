package servers

import (
	"os"
	"os/exec"
	"path/filepath"
)

// modules are the servers that scripts/servers builds from Go modules: Debian has no package,
// or an old one.
var modules = map[string]struct{ path, version string }{
	"versitygw": {"github.com/versity/versitygw/cmd/versitygw", "v1.8.0"},
}

// built is [chosen] for a server of modules. The go command installs programs into a folder
// that need not be in PATH.
func built(tb TB, variable, name string) string {
	tb.Helper()
	if os.Getenv(variable) == "" {
		if out, err := exec.Command("go", "env", "GOPATH").Output(); err == nil {
			for _, folder := range filepath.SplitList(string(out[:len(out)-1])) {
				if path, err := exec.LookPath(filepath.Join(folder, "bin", name)); err == nil {
					return path
				}
			}
		}
	}
	m := modules[name]
	return chosen(tb, variable, "none, but run go install "+m.path+"@"+m.version, name)
}
