package holdfast_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/build"
	"github.com/holdfast-go/holdfast/internal/markdown"
)

// documents returns the Markdown files that users read.
func documents(t *testing.T) []source {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(files(t)), func(s source) bool {
		return path.Ext(s.path) != ".md" || strings.Contains(s.path, "testdata/")
	})
}

// TestDocsGo sees to it that what readers copy compiles: whole programs are
// built, and fragments stand line by line in a Go file of the repository, such
// as the body of an Example. A line "// ..." in a fragment leaves something
// out.
func TestDocsGo(t *testing.T) {
	code := compiled(t)
	programs := make(map[string]string)
	for _, s := range documents(t) {
		blocks, err := markdown.Blocks(string(s.text))
		if err != nil {
			t.Errorf("%s: %v", s.path, err)
		}
		for _, block := range blocks {
			place := fmt.Sprintf("%s:%d", s.path, block.Line)
			switch block.Lang {
			case "":
				t.Errorf("%s: the block names no language: use text if it has none", place)
			case "golang", "bash", "shell":
				t.Errorf("%s: %s is called go or sh here", place, block.Lang)
			case "go":
				if regexp.MustCompile(`(?m)^package main$`).MatchString(block.Text) {
					programs[place] = block.Text
				} else if !slices.ContainsFunc(code, func(file string) bool { return holds(file, block.Text) }) {
					t.Errorf("%s: no Go file holds these lines: take them from an Example, or give a whole program", place)
				}
			}
		}
	}
	if len(programs) > 0 {
		compile(t, programs)
	}
}

// compiled returns the Go files that the go command compiles on some system,
// normalised.
func compiled(t *testing.T) (code []string) {
	t.Helper()
	ignored := regexp.MustCompile(`(?m)^//go:build ignore$`)
	for _, s := range goFiles(t) {
		if !ignored.Match(s.text) {
			code = append(code, normalise(string(s.text)))
		}
	}
	return code
}

// holds reports whether a file has the lines of a fragment, in order, and
// without gaps except where the fragment says so.
func holds(file, fragment string) bool {
	rest, some := file, false
	for part := range strings.SplitSeq(normalise(fragment), "\n// ...\n") {
		if part = strings.Trim(part, "\n"); part == "" {
			continue
		}
		_, after, found := strings.Cut(rest, "\n"+part+"\n")
		if !found {
			return false
		}
		rest, some = "\n"+after, true
	}
	return some
}

// normalise leaves of each line its words with single spaces between them, and
// drops empty lines. The text begins and ends with a line break, so that whole
// lines can be searched for.
func normalise(text string) string {
	var b strings.Builder
	b.WriteString("\n")
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			b.WriteString(strings.Join(words, " ") + "\n")
		}
	}
	return b.String()
}

// compile compiles programs, given by the place they come from, and does not link them.
// They are laid over the tree, among the examples; nothing is written there.
func compile(t *testing.T, programs map[string]string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	args := []string{"list", "-export", "-overlay", filepath.Join(scratch, "overlay.json")}
	if build.Race() {
		args = append(args, "-race")
	}
	for place, text := range programs {
		name := "doc_" + regexp.MustCompile(`\W`).ReplaceAllString(place, "_")
		file := filepath.Join(scratch, name+".go")
		text = fmt.Sprintf("//line %s:1\n%s", place, text)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(here, "examples", "internal", name, "main.go")] = file
		args = append(args, "./examples/internal/"+name)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "overlay.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("programs in the documents do not compile: %v\n%s", err, out)
	}
}

// TestDocsLinks follows the links between the files of the repository.
func TestDocsLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s:#]+)(?:#[^)\s]*)?\)`)
	for _, s := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(string(s.text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.FromSlash(s.dir()), filepath.FromSlash(match[1]))); err != nil {
				t.Errorf("%s: link to %s: %v", s.path, match[1], err)
			}
		}
	}
}

// TestDocsIndex wants a link to every page of docs in docs/README.md.
func TestDocsIndex(t *testing.T) {
	index, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range documents(t) {
		page, ours := strings.CutPrefix(s.path, "docs/")
		if ours && page != "README.md" && !strings.Contains(string(index), "]("+page+")") {
			t.Errorf("docs/README.md has no link to %s: say there what the page is for", page)
		}
	}
}

// TestDocsTests looks for the tests that the documents name: with their folder,
// as in redislock.TestFailover, or without where a sentence says "are in" and
// the folder. The root is called holdfast. Rules are those of package drivertest.
func TestDocsTests(t *testing.T) {
	rule := regexp.MustCompile(`(?m)^\t\tname:  "(.+)",$`)
	known := make(map[string]bool)
	for _, s := range goFiles(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() {
				known[strings.Replace(s.dir(), ".", "holdfast", 1)+"."+f.Name.Name] = true
			}
		}
		if s.dir() == "drivertest" {
			for _, match := range rule.FindAllStringSubmatch(string(s.text), -1) {
				known["rule "+match[1]] = true
			}
		}
	}
	named := regexp.MustCompile("are in\\s`([a-z0-9/]+)`|`(?:([a-z0-9/]+)\\.)?(Test[A-Z]\\w*)(?:/rules/([a-z/-]+))?`")
	for _, s := range documents(t) {
		folder := ""
		for _, match := range named.FindAllStringSubmatch(string(s.text), -1) {
			if match[1] != "" {
				folder = match[1]
				continue
			}
			if name := cmp.Or(match[2], folder) + "." + match[3]; !known[name] || match[4] != "" && !known["rule "+match[4]] {
				t.Errorf("%s: there is no %s", s.path, match[0])
			}
		}
	}
}
