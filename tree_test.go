package holdfast_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// These tests read the source of all modules: each is a rule of the house
// that a machine can check. See CONTRIBUTING.md.

// A source is one file of the repository.
type source struct {
	path string // from the root, with slashes
	text []byte
	file *ast.File // nil if it is not Go, or is test data
	fset *token.FileSet
}

func (s source) dir() string     { return path.Dir(s.path) }
func (s source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) generated() bool { return ast.IsGenerated(s.file) }

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

var tree = sync.OnceValues(func() (all []source, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains([]string{".git", "bin"}, entry.Name()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s := source{path: filepath.ToSlash(name), text: text, fset: fset}
		if path.Ext(s.path) == ".go" && !strings.Contains(s.path, "testdata/") {
			if s.file, err = parser.ParseFile(fset, name, text, parser.ParseComments); err != nil {
				return err
			}
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

// files returns every file of the repository.
func files(t *testing.T) []source {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("found no files")
	}
	return all
}

// goFiles returns every Go file that is not test data, for all systems.
func goFiles(t *testing.T) []source {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(files(t)), func(s source) bool { return s.file == nil })
}

func TestTreeFormat(t *testing.T) {
	args := []string{"-l"}
	for _, s := range goFiles(t) {
		args = append(args, filepath.FromSlash(s.path))
	}
	if out, err := exec.Command("gofmt", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("run gofmt -w on these (%v):\n%s", err, out)
	}
}

// TestTreeWeight keeps out what was built or recorded, and came along.
func TestTreeWeight(t *testing.T) {
	const heaviest = 1 << 18
	for _, s := range files(t) {
		if len(s.text) > heaviest {
			t.Errorf("%s has %d bytes: does it belong here (at most %d)?", s.path, len(s.text), heaviest)
		}
		if bytes.ContainsRune(s.text, 0) {
			t.Errorf("%s is no text", s.path)
		}
	}
}

func TestTreeLength(t *testing.T) {
	const longest = 400
	for _, s := range goFiles(t) {
		if n := bytes.Count(s.text, []byte("\n")); n > longest && !s.generated() {
			t.Errorf("%s has %d lines: divide it by its ideas (at most %d)", s.path, n, longest)
		}
	}
}

func TestTreeNames(t *testing.T) {
	vague := regexp.MustCompile(`^(utils?|commons?|miscs?|helpers?|base|types)$`)
	for _, s := range goFiles(t) {
		stem, _, _ := strings.Cut(strings.TrimSuffix(path.Base(s.path), ".go"), "_")
		for _, name := range []string{stem, path.Base(s.dir()), strings.TrimSuffix(s.file.Name.Name, "_test")} {
			if vague.MatchString(name) {
				t.Errorf("%s: %q says nothing: name it after what is in it", s.path, name)
			}
		}
	}
}

func TestTreeUnfinished(t *testing.T) {
	words := []string{"TO" + "DO", "FIX" + "ME"}
	marks := regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
	for _, s := range files(t) {
		has := func(word string) bool { return bytes.Contains(s.text, []byte(word)) }
		if path.Ext(s.path) == ".sum" || bytes.IndexByte(s.text, 0) >= 0 || !slices.ContainsFunc(words, has) {
			continue
		}
		for i, line := range bytes.Split(s.text, []byte("\n")) {
			if mark := marks.Find(line); mark != nil {
				t.Errorf("%s:%d: %s: finish it, or write down the limit that users have to know", s.path, i+1, mark)
			}
		}
	}
}

// TestTreeUnproved wants every report of what a slow machine left unproved to go through
// internal/unproved: "go test" hides the log of a test that passes.
func TestTreeUnproved(t *testing.T) {
	hidden := regexp.MustCompile(`\b(Log|Skip)f?\(.*not proved`)
	for _, s := range goFiles(t) {
		if !s.test() || !bytes.Contains(s.text, []byte("not proved")) { // which is much faster
			continue
		}
		if call := hidden.Find(s.text); call != nil {
			t.Errorf("%s: %s: report it by internal/unproved, so that make test prints it", s.path, call)
		}
	}
}

func TestTreePackageComments(t *testing.T) {
	described := make(map[string]bool)
	for _, s := range goFiles(t) {
		if !s.test() {
			described[s.dir()] = described[s.dir()] || s.file.Doc != nil
		}
	}
	for dir, has := range described {
		if !has {
			t.Errorf("package in %s has no package comment", dir)
		}
	}
}

func TestTreeDocComments(t *testing.T) {
	for _, s := range goFiles(t) {
		if s.test() || s.generated() || s.file.Name.Name == "main" || strings.Contains("/"+s.path, "/internal/") {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s:%d: exported %s has no doc comment", s.path, s.line(name), name.Name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that nothing
// explains.
func undocumented(decl ast.Decl) (names []*ast.Ident) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Doc == nil && (decl.Recv == nil || exportedMethod(decl)) {
			names = append(names, decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if decl.Doc == nil && spec.Doc == nil {
					names = append(names, spec.Name)
				}
			case *ast.ValueSpec: // a group may be explained as a whole, or line by line
				if decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					names = append(names, spec.Names...)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name *ast.Ident) bool { return !name.IsExported() })
}

// exportedMethod reports whether users see a method whose name alone does not
// say what it does.
func exportedMethod(decl *ast.FuncDecl) bool {
	if slices.Contains([]string{"Error", "Unwrap", "Is", "As", "String"}, decl.Name.Name) {
		return false
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch expr := receiver.(type) {
		case *ast.StarExpr:
			receiver = expr.X
		case *ast.IndexExpr:
			receiver = expr.X
		case *ast.IndexListExpr:
			receiver = expr.X
		default:
			return receiver.(*ast.Ident).IsExported()
		}
	}
}

// TestTreeOpenings wants every sentence of a comment to open with its subject: the subject of
// "Who waits asks again" is a relative clause, which readers have to hold in mind.
func TestTreeOpenings(t *testing.T) {
	opening := regexp.MustCompile(`(?:^|[.:!?]\s|\n\n)((?:Who|Whom|Whose|Whoever|What|Whatever|(?:Those|One) (?:who|that|which))\s[^.:!?]*[.:!?]?)`)
	for _, s := range goFiles(t) {
		for _, group := range s.file.Comments {
			for _, match := range opening.FindAllStringSubmatch(group.Text(), -1) {
				if !strings.HasSuffix(match[1], "?") {
					t.Errorf("%s:%d: a sentence opens with a relative clause: %q", s.path, s.line(group), strings.TrimSpace(match[1]))
				}
			}
		}
	}
}
