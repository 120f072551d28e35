package locks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var method = regexp.MustCompile(`^\(\*?(.*)\.(\w+)\)\.(\w+)$`)

// TestHoldfast looks up the rows for Holdfast in the source of Holdfast.
func TestHoldfast(t *testing.T) {
	names := make([]string, 0, len(Functions)+len(Keys))
	for _, row := range Functions {
		names = append(names, row.Name)
	}
	for name := range Keys {
		names = append(names, name)
	}
	seen := 0
	for _, name := range names {
		if !strings.Contains(name, holdfast) {
			continue
		}
		seen++
		folder, receiver, fn := "", "", ""
		if parts := method.FindStringSubmatch(name); parts != nil {
			folder, receiver, fn = parts[1], parts[2], parts[3]
		} else {
			i := strings.LastIndex(name, ".")
			folder, fn = name[:i], name[i+1:]
		}
		if !declared(t, strings.TrimPrefix(folder, holdfast), receiver, fn, strings.HasPrefix(name, "(*")) {
			t.Errorf("the table has %s, and the source has no such function", name)
		}
	}
	if seen == 0 {
		t.Error("the table has no function of Holdfast")
	}
}

// declared reports whether the package in a folder of Holdfast declares a function or a method.
func declared(t *testing.T, folder, receiver, fn string, pointer bool) (found bool) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", filepath.FromSlash(folder))
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != dir:
			return fs.SkipDir
		case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Name.Name == fn {
				found = found || matches(d, receiver, pointer)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func matches(d *ast.FuncDecl, receiver string, pointer bool) bool {
	if d.Recv == nil {
		return receiver == ""
	}
	of := d.Recv.List[0].Type
	star, isPointer := of.(*ast.StarExpr)
	if isPointer {
		of = star.X
	}
	id, ok := of.(*ast.Ident)
	return ok && id.Name == receiver && isPointer == pointer
}
