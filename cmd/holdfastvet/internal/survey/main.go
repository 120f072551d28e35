// Command survey runs the rules on the source of foreign modules, without the modules that
// the source requires:
//
//	go run ./internal/survey FOLDER...
//
// The lock libraries are the stubs of the rules' tests, and an unknown package is empty. So a
// survey of a large module takes seconds, and finds fewer misuses than holdfastvet. The
// findings in docs/results/vet.md were judged by reading the source.
package main

import (
	"fmt"
	"go/build"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/rules"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: survey FOLDER...")
		os.Exit(2)
	}
	for _, root := range os.Args[1:] {
		if err := survey(root); err != nil {
			fmt.Fprintf(os.Stderr, "survey %s: %v\n", root, err)
			os.Exit(1)
		}
	}
}

// uses matches the import of a lock library, an advisory lock, and the method of a lock that another
// package made.
var uses = regexp.MustCompile(`leaderelection"|pg_(try_)?advisory_|(?i:get_lock\()|\.(NewMutex|LockContext|Obtain)\(|` + strings.Join(locks.Modules, "|"))

// survey prints the findings in the packages below a folder that use a lock library.
func survey(root string) error {
	folders, err := stubFolders()
	if err != nil {
		return err
	}
	all := &world{fset: token.NewFileSet(), known: make(map[string]*source), stubs: folders}
	var found []*packages.Package
	err = filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "vendor" || name == "testdata" || name == ".git" {
			return fs.SkipDir
		}
		if p, err := build.ImportDir(dir, 0); err == nil && concerned(dir, p.GoFiles) {
			s := all.check(dir)
			found = append(found, s.asPackage())
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("# %s: %d packages\n", filepath.Base(root), len(found))
	graph, err := checker.Analyze(rules.All, found, nil)
	if err != nil {
		return err
	}
	for action := range graph.All() {
		if !action.IsRoot {
			continue
		}
		if action.Err != nil {
			fmt.Printf("%s: %v\n", action, action.Err)
		}
		for _, d := range action.Diagnostics {
			at := all.fset.Position(d.Pos)
			name, err := filepath.Rel(root, at.Filename)
			if err != nil {
				return err
			}
			fmt.Printf("%s:%d: %s: %s\n", name, at.Line, action.Analyzer.Name, d.Message)
		}
	}
	return nil
}

// concerned reports whether a file names a lock library or an advisory lock.
func concerned(dir string, files []string) bool {
	for _, name := range files {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil && uses.Match(text) {
			return true
		}
	}
	return false
}
