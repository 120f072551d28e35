package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPictures wants the pictures of docs to show the source as it is.
func TestPictures(t *testing.T) {
	root := filepath.Join("..", "..")
	for name, draw := range drawings {
		g, err := draw(root)
		if err != nil {
			t.Fatal(err)
		}
		saved, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil || !bytes.Equal(saved, g.svg()) {
			t.Errorf("docs/%s does not show the source, which has %q (%v): run go run ./internal/arrows -save=docs", name, g.title(), err)
		}
	}
}

// TestMethods wants the methods of a type of the engine to stand in two files at most.
func TestMethods(t *testing.T) {
	files, err := source(token.NewFileSet(), filepath.Join("..", "engine"))
	if err != nil {
		t.Fatal(err)
	}
	places := make(map[string][]string) // the files with methods, by type
	for name, file := range files {
		for _, decl := range file.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			of := strings.TrimPrefix(types.ExprString(method.Recv.List[0].Type), "*")
			if !slices.Contains(places[of], name) {
				places[of] = append(places[of], name)
			}
		}
	}
	for of, names := range places {
		if len(names) > 2 {
			t.Errorf("%s has methods in %q", of, names)
		}
	}
}

func TestTitle(t *testing.T) {
	g := newGraph("Files", []string{"a", "b", "c"}, map[[2]string]map[string]bool{
		{"a", "b"}: {"x": true, "w": true}, {"a", "c"}: {"y": true}, {"c", "a"}: {"z": true},
	})
	if want := "Files: 2 arrows down, 1 back up"; g.title() != want {
		t.Errorf("got %q, want %q", g.title(), want)
	}
	if want := []string{"w", "x"}; !slices.Equal(g.arrows[0].names, want) {
		t.Errorf("the first arrow uses %q, want %q", g.arrows[0].names, want)
	}
}

func TestLayers(t *testing.T) {
	got := layers(map[string][]string{
		"driver": nil, "engine": {"driver"}, "store": {"driver"}, "face": {"driver", "engine"}, "user": {"face", "driver"},
	})
	if want := []string{"user", "face", "engine", "store", "driver"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOrder(t *testing.T) {
	for comment, want := range map[string]string{
		"first b.go, then a.go":       "b.go a.go",
		"first b.go":                  "the package comment does not list a.go",
		"a.go, b.go and c.go":         "the package comment lists c.go, which is twice there, or no file",
		"a.go, b.go and a.go (again)": "the package comment lists a.go, which is twice there, or no file",
	} {
		files := make(map[string]*ast.File)
		for name, text := range map[string]string{"a.go": "package p", "b.go": "package p", "doc.go": "// " + comment + "\npackage p"} {
			file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = file
		}
		names, err := order(files)
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", comment, got, want)
		}
	}
}
