package main

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// A world has the packages that were checked, by folder.
type world struct {
	fset     *token.FileSet
	known    map[string]*source
	stubs    map[string]string
	standard types.Importer
}

// A source is a package that was checked, as far as its imports are known.
type source struct {
	path  string
	files []*ast.File
	types *types.Package
	info  *types.Info
	world *world
}

// check checks the package in a folder. Errors are ignored: most imports are unknown.
func (w *world) check(dir string) *source {
	if s := w.known[dir]; s != nil {
		return s
	}
	root, module := moduleOf(dir)
	s := &source{world: w, path: dir}
	if rel, err := filepath.Rel(root, dir); err == nil {
		s.path = path.Join(module, filepath.ToSlash(rel))
	}
	s.types = types.NewPackage(s.path, path.Base(s.path))
	w.known[dir] = s // for imports in a circle, which broken source may have
	folder, err := build.ImportDir(dir, 0)
	if err != nil {
		return s
	}
	for _, name := range folder.GoFiles {
		if f, err := parser.ParseFile(w.fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution); err == nil {
			s.files = append(s.files, f)
		}
	}
	s.info = &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Instances: make(map[*ast.Ident]types.Instance),
		Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
		Implicits: make(map[ast.Node]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection),
		Scopes: make(map[ast.Node]*types.Scope), FileVersions: make(map[*ast.File]string),
	}
	config := types.Config{Error: func(error) {}, Importer: &imports{w, root, module}, FakeImportC: true}
	if checked, _ := config.Check(s.path, w.fset, s.files, s.info); checked != nil {
		s.types = checked
	}
	return s
}

func (s *source) asPackage() *packages.Package {
	return &packages.Package{
		ID: s.path, PkgPath: s.path, Name: s.types.Name(), Fset: s.world.fset, Syntax: s.files,
		Types: s.types, TypesInfo: s.info, TypesSizes: types.SizesFor("gc", runtime.GOARCH),
	}
}

// imports finds the imports of the packages of a module.
type imports struct {
	world        *world
	root, module string
}

func (i *imports) Import(name string) (*types.Package, error) {
	if dir := i.world.stubs[locks.Plain(name)]; dir != "" {
		return i.world.checked(dir), nil
	}
	if rest, ok := strings.CutPrefix(name, i.module); ok && i.module != "" && (rest == "" || rest[0] == '/') {
		return i.world.checked(filepath.Join(i.root, filepath.FromSlash(rest))), nil
	}
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		if i.world.standard == nil {
			i.world.standard = importer.ForCompiler(i.world.fset, "gc", nil)
		}
		return i.world.standard.Import(name)
	}
	p := types.NewPackage(name, guess(name))
	p.MarkComplete()
	return p, nil
}

func (w *world) checked(dir string) *types.Package {
	s := w.check(dir)
	s.types.MarkComplete()
	return s.types
}

// stubs returns the folder with the stubs of the libraries.
func stubs() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "rules", "testdata", "src")
}

// stubFolders returns the folders of the stubs by their import paths without major versions.
func stubFolders() (map[string]string, error) {
	folders := make(map[string]string)
	err := filepath.WalkDir(stubs(), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "stub.go" {
			return err
		}
		rel, err := filepath.Rel(stubs(), filepath.Dir(name))
		folders[locks.Plain(filepath.ToSlash(rel))] = filepath.Dir(name)
		return err
	})
	return folders, err
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// guess returns the probable name of an unknown package.
func guess(name string) string {
	base := path.Base(name)
	if version.MatchString(base) {
		base = path.Base(path.Dir(name))
	}
	base, _, _ = strings.Cut(base, ".")
	return strings.ReplaceAll(strings.TrimPrefix(base, "go-"), "-", "")
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

// moduleOf returns the folder and the path of the module around a folder. In the stubs, a
// path is the folder below the root.
func moduleOf(dir string) (root, module string) {
	if rel, err := filepath.Rel(stubs(), dir); err == nil && !strings.HasPrefix(rel, "..") {
		return stubs(), ""
	}
	for root = dir; ; root = filepath.Dir(root) {
		if text, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil {
			if match := moduleLine.FindSubmatch(text); match != nil {
				return root, string(match[1])
			}
		}
		if root == filepath.Dir(root) {
			return dir, ""
		}
	}
}
