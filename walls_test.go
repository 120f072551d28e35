package holdfast_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// walls says which folders of this repository the shipped files of a folder
// may import, "." being the root. It keeps a store from pulling in the engine
// or another store, and users of the engine from linking stores they never
// open. "/..." stands for a folder and all below it; the longest match counts.
//
// Tests may import what they like of their own module and what it requires; the
// root module requires nothing.
var walls = map[string]string{
	"driver":                               "", // the standard library only
	"internal/...":                         "driver internal/...",
	"internal/sqlstore":                    "dialect driver internal/...",
	"internal/outage":                      ". driver",              // what tests of several stores share
	"internal/starve":                      ". driver",              // the same
	"internal/session/sessiontest":         ". driver internal/...", // the same
	"internal/unlocking":                   ".",                     // the same
	"internal/conditional":                 "caslock driver internal/...",
	"internal/objects":                     "caslock driver fence internal/...",
	"internal/conditional/conditionaltest": ". caslock driver fence internal/...", // what tests of several stores share
	"internal/sim":                         ". driver memlock internal/...",
	"internal/demo/...":                    ". driver filelock internal/...",
	"internal/cli/...":                     ". driver internal/...",
	".":                                    "driver internal/...",
	"drivertest":                           "driver internal/...",

	"memlock":       "driver internal/...",
	"filelock":      "driver internal/...",
	"dialect":       "",
	"sqllock":       "dialect driver internal/...",
	"redlock":       "driver internal/...",
	"memcachelock":  "driver internal/...",
	"caslock":       "driver internal/...",
	"zklock":        "driver internal/...",
	"redislock/...": "driver internal/... redislock redislock/internal/...",
	"dynamodblock":  "caslock driver internal/...",
	"etcdlock":      "driver internal/...",
	"natslock":      "caslock driver internal/...",
	"s3lock":        "caslock driver fence internal/...",
	"azurelock":     "caslock driver fence internal/...",
	"gcslock":       "caslock driver fence internal/...",
	"pglock":        "dialect driver fence internal/...",
	"mssqllock":     "driver internal/...",
	"mysqllock":     "driver internal/...",
	"sqlitelock":    "driver internal/...",

	"fence":               "dialect driver internal/...", // not the engine: stores use it
	"httplock":            ". driver fence once internal/...",
	"once/...":            ". dialect driver fence once internal/...",
	"redislock/redisonce": ". driver fence once internal/... redislock redislock/internal/...", // its connections
	"elect":               ". internal/...",
	"locktest":            ". fence internal/...", // the simulator
	"schedlock":           ". elect internal/...",
	"gocronlock":          ". internal/... schedlock",
	"ginlock":             "", // any middleware of net/http
	"grpclock":            ". driver fence internal/...",
	"otellock":            ". driver internal/...",
	"certlock":            ".",

	"all":          "...",
	"examples/...": "...",
	"cmd/...":      "...",
	"bench/...":    "...",
	"proof/...":    "...",
}

func TestWalls(t *testing.T) {
	for _, s := range goFiles(t) {
		wall, ok := lookup(walls, s.dir())
		if !ok {
			t.Errorf("%s: no wall for %s: say in walls_test.go what it may import", s.path, s.dir())
			continue
		}
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if reason := refuse(s, wall, path); reason != "" {
				t.Errorf("%s:%d: imports %s: %s", s.path, s.line(spec), path, reason)
			}
		}
	}
}

// refuse says why a file may not import a package, "" if it may.
func refuse(s source, wall, path string) string {
	first, _, _ := strings.Cut(path, "/")
	house, ours := folder(path)
	root := moduleOf(s.dir()) == "."
	switch {
	case path == "C":
		return "everything builds without a C compiler"
	case !ours && !strings.Contains(first, "."):
		return "" // the standard library
	case ours && root && moduleOf(house) != ".":
		return "the root module requires no other"
	case ours && (s.test() || house == s.dir() || anyWithin(house, wall)):
		return ""
	case ours:
		return "the wall of " + s.dir() + " allows only " + cmp.Or(wall, "the standard library")
	case root:
		return "the root module uses the standard library only"
	}
	folders, known := clients[longestPrefix(path)]
	if !known {
		return "unknown module: a dependency is a decision, written down in walls_test.go"
	}
	if !anyWithin(s.dir(), folders) {
		return "only for " + folders
	}
	return ""
}

// moduleOf returns the folder of the module that a folder belongs to.
func moduleOf(folder string) string {
	for ; folder != "."; folder = pathpkg.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
	}
	return "."
}

// modules returns the folders of all modules.
func modules(t *testing.T) (all []string) {
	t.Helper()
	for _, s := range files(t) {
		if pathpkg.Base(s.path) == "go.mod" {
			all = append(all, s.dir())
		}
	}
	return all
}

// modulePath returns the path of the module in a folder.
func modulePath(folder string) string { return pathpkg.Join(module, folder) }

// folder returns the folder of a package of this repository.
func folder(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// within reports whether a folder matches a pattern, which may end in "...".
func within(folder, pattern string) bool {
	above, open := strings.CutSuffix(pattern, "...")
	return folder == strings.TrimSuffix(above, "/") || open && strings.HasPrefix(folder, above)
}

func anyWithin(folder, patterns string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool { return within(folder, p) })
}

// lookup returns the entry whose pattern is the longest to match, not counting the dots.
func lookup(table map[string]string, name string) (string, bool) {
	best, found := "", false
	length := func(pattern string) int { return len(strings.TrimSuffix(pattern, "...")) }
	for pattern := range table {
		if within(name, pattern) && (!found || length(pattern) > length(best)) {
			best, found = pattern, true
		}
	}
	return table[best], found
}

// longestPrefix returns the module among clients that holds a package.
func longestPrefix(path string) (best string) {
	for client := range clients {
		if within(path, client+"/...") && len(client) > len(best) {
			best = client
		}
	}
	return best
}

// A modfile is what the go command reads in a go.mod or go.work file.
type modfile struct {
	Go        string
	Toolchain string
	Require   []struct {
		Path     string
		Version  string
		Indirect bool
	}
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Exclude []any
	Tool    []any
	Use     []struct{ DiskPath string }
}

func readModfile(t *testing.T, kind, file string) (m modfile) {
	t.Helper()
	out, err := exec.Command("go", kind, "edit", "-json", file).Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		t.Fatalf("go %s edit -json %s: %v", kind, file, err)
	}
	return m
}

func TestRootRequiresNothing(t *testing.T) {
	m := readModfile(t, "mod", "go.mod")
	if n := len(m.Require) + len(m.Replace) + len(m.Exclude) + len(m.Tool); n != 0 {
		t.Errorf("go.mod: has %d lines besides module and go: the root module requires nothing; what needs a client is a module of its own", n)
	}
}

// TestModulesRequireWhatIsMeant keeps every module installable: what go.mod replaces
// or excludes is not what those get who import the module.
func TestModulesRequireWhatIsMeant(t *testing.T) {
	work := readModfile(t, "work", "go.work")
	version := ""
	for _, r := range work.Replace {
		version = cmp.Or(version, r.Old.Version)
	}
	for _, dir := range modules(t) {
		name := pathpkg.Join(dir, "go.mod")
		m := readModfile(t, "mod", name)
		for _, r := range m.Require {
			_, ours := folder(r.Path)
			_, known := clients[r.Path]
			switch {
			case ours && r.Version != version:
				t.Errorf("%s: requires %s %s, but go.work has the modules of %s", name, r.Path, r.Version, version)
			case !ours && !known && !r.Indirect:
				t.Errorf("%s: requires %s: a dependency is a decision, written down in walls_test.go", name, r.Path)
			}
		}
		if n := len(m.Replace) + len(m.Exclude) + len(m.Tool); n != 0 {
			t.Errorf("%s: has %d lines of replace, exclude or tool: those who import it would not get that", name, n)
		}
	}
}

// TestWorkspace wants all modules in go.work: to use, and in place of the version that
// the others require, which is not released yet.
func TestWorkspace(t *testing.T) {
	work := readModfile(t, "work", "go.work")
	var used, replaced, want, paths []string
	for _, u := range work.Use {
		used = append(used, pathpkg.Clean(u.DiskPath))
	}
	for _, r := range work.Replace {
		replaced = append(replaced, r.Old.Path+" => "+pathpkg.Clean(r.New.Path))
	}
	for _, folder := range modules(t) {
		want = append(want, folder)
		paths = append(paths, modulePath(folder)+" => "+folder)
	}
	for _, list := range []*[]string{&used, &replaced, &want, &paths} {
		slices.Sort(*list)
	}
	if !slices.Equal(used, want) {
		t.Errorf("go.work uses %q, want %q", used, want)
	}
	if !slices.Equal(replaced, paths) {
		t.Errorf("go.work replaces %q, want %q", replaced, paths)
	}
}

func TestGoVersion(t *testing.T) {
	const oldest = "1.25.0" // newer would shut out users; older lacks testing/synctest
	all := map[string]modfile{"go.work": readModfile(t, "work", "go.work")}
	for _, folder := range modules(t) {
		name := pathpkg.Join(folder, "go.mod")
		all[name] = readModfile(t, "mod", name)
	}
	for name, m := range all {
		if m.Go != oldest || m.Toolchain != "" {
			t.Errorf("%s: go %s, toolchain %q: must stay at go %s without a toolchain line", name, m.Go, m.Toolchain, oldest)
		}
	}
}
