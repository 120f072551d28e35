package locktest_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// The page of the package shows an example with its test only if the example is a whole
// program: everything that it calls is in its file.
func TestExamplesAreWhole(t *testing.T) {
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	examples := doc.Examples(files...)
	for _, e := range examples {
		if e.Play == nil {
			t.Errorf("Example%s calls a function of another file", e.Name)
		}
	}
	if len(examples) == 0 {
		t.Error("there are no examples")
	}
}
