package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// root is the path of the root module. The paths of all other modules begin with root.
const root = "github.com/holdfast-go/holdfast"

// A tree is a checkout of the repository.
type tree struct{ dir string }

// run runs a program in a folder and returns its output.
func run(dir, name string, args ...string) (string, error) {
	return runWith(dir, nil, name, args...)
}

// runWith runs a program in a folder, with additions to the environment.
func runWith(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stderr.Bytes(), out)
	}
	return string(out), err
}

// A module is one of the modules of the repository.
type module struct {
	dir  string // from the root of the repository, with slashes; "" for the root
	path string
}

// tag is the name under which git keeps a version of the module.
func (m module) tag(version string) string { return path.Join(m.dir, version) }

// private reports whether the module is for developers only, and needs no tag.
func (m module) private() bool { return strings.HasPrefix(m.dir, "internal/") }

// modules returns all modules, the root first.
func (t tree) modules() (all []module, err error) {
	err = filepath.WalkDir(t.dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()):
			return fs.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		dir, err := filepath.Rel(t.dir, filepath.Dir(name))
		dir = strings.TrimPrefix(filepath.ToSlash(dir), ".")
		all = append(all, module{dir, path.Join(root, dir)})
		return err
	})
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.dir, b.dir) })
	return all, err
}

// setVersion lets all modules require each other at a version. setVersion
// returns the names of the go.mod and go.work files with changes.
func (t tree) setVersion(version string) (changed []string, err error) {
	all, err := t.modules()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		name := path.Join(m.dir, "go.mod")
		edited, err := t.edit(name, func(text []byte) ([]byte, error) { return requireVersion(name, text, version) })
		if err != nil {
			return nil, err
		}
		if edited {
			changed = append(changed, name)
		}
	}
	edited, err := t.edit("go.work", func(text []byte) ([]byte, error) { return replaceVersion(text, version) })
	if edited {
		changed = append(changed, "go.work")
	}
	return changed, err
}

// edit rewrites a file, and reports whether the text changed.
func (t tree) edit(name string, rewrite func([]byte) ([]byte, error)) (bool, error) {
	file := filepath.Join(t.dir, filepath.FromSlash(name))
	before, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	after, err := rewrite(before)
	if err != nil || bytes.Equal(before, after) {
		return false, err
	}
	return true, os.WriteFile(file, after, 0o644)
}

// ours reports whether a module path belongs to the repository.
func ours(p string) bool { return p == root || strings.HasPrefix(p, root+"/") }

func requireVersion(name string, text []byte, version string) ([]byte, error) {
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Require {
		if ours(r.Mod.Path) {
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	f.Cleanup()
	return f.Format()
}

func replaceVersion(text []byte, version string) ([]byte, error) {
	f, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(f.Replace) {
		if !ours(r.Old.Path) || r.Old.Version == version {
			continue
		}
		// An edit of the line keeps the block together.
		r.Syntax.Token[slices.Index(r.Syntax.Token, r.Old.Version)] = version
	}
	f.Cleanup()
	return modfile.Format(f.Syntax), nil
}
