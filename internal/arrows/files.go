package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// engineFiles draws the files of the engine.
func engineFiles(root string) (*graph, error) {
	folder := filepath.Join(root, "internal", "engine")
	fset := token.NewFileSet()
	files, err := source(fset, folder)
	if err != nil {
		return nil, err
	}
	info, err := check(fset, folder, files)
	if err != nil {
		return nil, err
	}
	nodes, err := order(files)
	if err != nil {
		return nil, err
	}
	uses := make(map[[2]string]map[string]bool)
	for name, object := range info.Uses {
		from, to := base(fset, name.Pos()), base(fset, object.Pos())
		if from == to || files[to] == nil {
			continue // the same file, or a different package
		}
		pair := [2]string{from, to}
		if uses[pair] == nil {
			uses[pair] = make(map[string]bool)
		}
		uses[pair][object.Name()] = true
	}
	return newGraph("Files of internal/engine", nodes, uses), nil
}

// base is the name of the file of a position.
func base(fset *token.FileSet, at token.Pos) string {
	return filepath.Base(fset.Position(at).Filename)
}

// source parses the files of a package without its tests, by name.
func source(fset *token.FileSet, folder string) (map[string]*ast.File, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := make(map[string]*ast.File)
	for _, entry := range entries {
		name := entry.Name()
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(fset, filepath.Join(folder, name), nil, parser.ParseComments); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// check finds the object of every name. The go command has the types of the imports.
func check(fset *token.FileSet, folder string, files map[string]*ast.File) (*types.Info, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	list.Dir, list.Stderr = folder, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", open)}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	_, err = config.Check("engine", fset, slices.Collect(maps.Values(files)), info)
	return info, err
}

// order is the list of files in the package comment, which has to name every file but the
// one with the comment.
func order(files map[string]*ast.File) (names []string, err error) {
	var comment string
	for _, file := range files {
		comment += file.Doc.Text()
	}
	for _, name := range regexp.MustCompile(`\w+\.go\b`).FindAllString(comment, -1) {
		if files[name] == nil || slices.Contains(names, name) {
			return nil, fmt.Errorf("the package comment lists %s, which is twice there, or no file", name)
		}
		names = append(names, name)
	}
	for name := range files {
		if name != "doc.go" && !slices.Contains(names, name) {
			return nil, fmt.Errorf("the package comment does not list %s", name)
		}
	}
	return names, nil
}
