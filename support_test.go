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

// TestSupportMatrix compares the versions that SUPPORT.md calls tested with the servers on
// which the stores passed, by docs/results/matrix.md.
func TestSupportMatrix(t *testing.T) {
	text, err := os.ReadFile("SUPPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	results, err := os.ReadFile("docs/results/matrix.md")
	if err != nil {
		t.Fatal(err)
	}
	passed := make(map[string]bool) // by name and version, and not yet named
	for _, match := range regexp.MustCompile(`(?m)^\| ([A-Za-z]+ [\d.]+).* \| passed \|$`).FindAllStringSubmatch(string(results), -1) {
		passed[match[1]] = true
	}
	if len(passed) == 0 {
		t.Error("docs/results/matrix.md has no server on which a store passed")
	}
	named := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| .+ \\| `(redis|pg|mysql|etcd|nats|s3|zk|memcache)lock` \\| .+ \\| (.+) \\|$").FindAllStringSubmatch(string(text), -1) {
		product := ""
		for item := range strings.SplitSeq(row[2], ", ") {
			item, _, _ = strings.Cut(item, " (") // a remark
			name, version, found := strings.Cut(item, " ")
			if found {
				product = name
			} else {
				version = item
			}
			any := false
			for server := range passed {
				if server == product+" "+version || strings.HasPrefix(server, product+" "+version+".") {
					any, named[server] = true, true
				}
			}
			if !any {
				t.Errorf("SUPPORT.md: %s %s is called tested, but docs/results/matrix.md has no such server that passed", product, version)
			}
		}
	}
	for server := range passed {
		if !named[server] {
			t.Errorf("SUPPORT.md does not name %s, on which the store passed by docs/results/matrix.md", server)
		}
	}
}

// TestSupportInstalled: SUPPORT.md names the versions that scripts/servers installs and that package
// servers expects, and the SQLite of sqlitelock.
func TestSupportInstalled(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	support, script := read("SUPPORT.md"), read("scripts/servers")
	for file, name := range map[string]string{
		"nats": "NATS", "s3": "versitygw", "gcs": "fake-gcs-server", "dynamodb": "dynalite", "azurite": "Azurite",
	} {
		match := regexp.MustCompile(`Version = "v?((\d+\.\d+)\.\d+)"`).FindStringSubmatch(read("internal/servers/" + file + ".go"))
		switch {
		case match == nil:
			t.Errorf("internal/servers/%s.go has no version", file)
		case !regexp.MustCompile("@v?" + regexp.QuoteMeta(match[1]) + `\n`).MatchString(script):
			t.Errorf("scripts/servers does not install %s %s", name, match[1])
		case !strings.Contains(support, name+" "+match[2]),
			!regexp.MustCompile(`(?m)^\| .*` + name + ` [\d., ]*` + regexp.QuoteMeta(match[2])).MatchString(support):
			t.Errorf("SUPPORT.md does not say in the text and in the table that %s %s is tested", name, match[2])
		}
	}
	sqlite := regexp.MustCompile(`modernc\.org/sqlite v(\d+\.\d+)`).FindStringSubmatch(read("sqlitelock/go.mod"))
	if sqlite == nil || !strings.Contains(support, "modernc.org/sqlite "+sqlite[1]+" |") {
		t.Errorf("SUPPORT.md does not name the SQLite %q of sqlitelock", sqlite)
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
