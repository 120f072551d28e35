package holdfast_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestSupportTable compares what SUPPORT.md says a store needs with what the package
// comment of the store says.
func TestSupportTable(t *testing.T) {
	text, err := os.ReadFile("SUPPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	comments := make(map[string]string)
	for _, s := range goFiles(t) {
		if s.file.Doc != nil && !s.test() {
			comments[s.dir()] += strings.Join(strings.Fields(s.file.Doc.Text()), " ")
		}
	}
	row := regexp.MustCompile("(?m)^\\| .+ \\| `(\\w+)` \\| (.+) \\| (.+) \\|$")
	listed := make(map[string]bool)
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		listed[match[1]] = true
		needs := match[2]
		if strings.HasSuffix(needs, "later") && !strings.Contains(comments[match[1]], "store in "+needs) {
			t.Errorf("SUPPORT.md: %s needs %s, but its package comment does not say so", match[1], needs)
		}
	}
	for dir, comment := range comments {
		if strings.HasPrefix(comment, "Package "+path.Base(dir)+" is a store in ") && dir != "sqllock" && !listed[dir] {
			t.Errorf("SUPPORT.md does not list the store %s", dir)
		}
	}
}

// TestSupportGo: SUPPORT.md and the workflow name the oldest version of Go that go.mod
// allows, and the next one.
func TestSupportGo(t *testing.T) {
	oldest, _, _ := strings.Cut(strings.TrimPrefix(readModfile(t, "mod", "go.mod").Go, "1."), ".")
	for file, want := range map[string]string{
		"SUPPORT.md":               `\*\*Go\.\*\* Go 1\.` + oldest + ` and Go 1\.\d+:`,
		".github/workflows/ci.yml": `go: \["1\.` + oldest + `", "1\.\d+"\]`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("%s: no line matches %s", file, want)
		}
	}
}
