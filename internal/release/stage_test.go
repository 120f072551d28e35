package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// A stage is where a release is rehearsed: a proxy that serves the modules, and an
// application of early 2024.
type stage struct {
	*testing.T
	version string            // the version that the modules of this tree require of each other
	env     []string          // what the go command needs to see the release
	app     string            // the folder of the application, whose files stay as they are
	before  map[string]string // the versions of the modules that the application lists
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, app: t.TempDir()}

	// The application comes first, and comes from the module cache of the user, so
	// that the proxies of the user are asked for old libraries only once.
	s.env = []string{"GOWORK=off"}
	s.in(s.app, "go", "mod", "init", "example.com/app")
	s.in(s.app, "go", "mod", "edit", "-go=1.25.0")
	s.in(s.app, "go", append([]string{"get"}, early2024...)...)
	s.before = s.required(s.app)
	for _, lib := range early2024 {
		if name, version, _ := strings.Cut(lib, "@"); s.before[name] != version {
			t.Fatalf("the application has %s %q to begin with, want %s", name, s.before[name], version)
		}
	}

	text, err := os.ReadFile("../../go.work")
	if err != nil {
		t.Fatal(err)
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.version = work.Replace[0].Old.Version
	proxy := t.TempDir()
	if err := (tree{"../.."}).pack(s.version, proxy); err != nil {
		t.Fatal(err)
	}
	env, err := proxied(proxy, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(env, "GOSUMDB=off") // the sums were checked on the way into the user's cache
	return s
}

// of returns the stage for a subtest.
func (s *stage) of(t *testing.T) *stage {
	sub := *s
	sub.T = t
	return &sub
}

// in runs a program in a folder, and fails the test if the program fails.
func (s *stage) in(dir, name string, args ...string) string {
	s.Helper()
	out, err := runWith(dir, s.env, name, args...)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// module makes a module with the program of an act, which gets what the act imports.
func (s *stage) module(a act) (dir string) {
	s.Helper()
	dir = s.TempDir()
	s.in(dir, "go", "mod", "init", "example.com/program")
	s.in(dir, "go", "mod", "edit", "-go=1.25.0")
	if a.program != "" {
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(a.source()), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.get(dir, a)
	return dir
}

// get gets what an act imports, as users do.
func (s *stage) get(dir string, a act) {
	s.Helper()
	args := []string{"get"}
	for _, name := range append(slices.Clone(a.imports), a.what) {
		args = append(args, path.Join(root, name)+"@"+s.version)
	}
	s.in(dir, "go", args...)
}

// build builds the program of an act, and returns its file.
func (s *stage) build(dir string, a act) string {
	s.Helper()
	if a.program == "" {
		s.env = append(slices.Clone(s.env), "GOBIN="+dir)
		s.in(dir, "go", slices.Concat([]string{"install"}, lean, []string{path.Join(root, a.what) + "@" + s.version})...)
		return filepath.Join(dir, path.Base(a.what)+exe(runtime.GOOS))
	}
	program := filepath.Join(dir, "program"+exe(runtime.GOOS))
	s.in(dir, "go", slices.Concat([]string{"build"}, lean, []string{"-o", program, "."})...)
	return program
}

// required returns the versions of all modules that a module in dir lists, but its own.
func (s *stage) required(dir string) map[string]string {
	s.Helper()
	all := make(map[string]string)
	for line := range strings.Lines(s.in(dir, "go", "list", "-m", "all")) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[name] = version
		}
	}
	return all
}

// raised returns what the application of early 2024 has to raise if it gets what an act
// imports: of all modules, and of the eleven that it requires.
func (s *stage) raised(a act) (all, ofEleven []string) {
	s.Helper()
	app := s.TempDir()
	if err := os.CopyFS(app, os.DirFS(s.app)); err != nil {
		s.Fatal(err)
	}
	s.get(app, a)
	after := s.required(app)
	for name, before := range s.before {
		if semver.Compare(after[name], before) <= 0 {
			continue
		}
		line := fmt.Sprintf("%s %s -> %s", name, before, after[name])
		all = append(all, line)
		if slices.Contains(early2024, name+"@"+before) {
			ofEleven = append(ofEleven, line)
		}
	}
	slices.Sort(all)
	slices.Sort(ofEleven)
	return all, ofEleven
}
