package holdfast_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/markdown"
)

// TestReadmeFromACheckout does what the README tells a newcomer: a module of
// their own beside a checkout, the commands that join the two, the program.
func TestReadmeFromACheckout(t *testing.T) {
	checkout, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(checkout, filepath.Join(dir, "holdfast")); err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(dir, "app")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	program, commands := readme(t, "go", "package main"), readme(t, "sh", "go mod edit")
	if err := os.WriteFile(filepath.Join(app, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-euc", "go mod init example.com/app 2>&1\n"+commands)
	cmd.Dir = app
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "one process at a time\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestReadmeTargets asks make for each target that the README names.
func TestReadmeTargets(t *testing.T) {
	for line := range strings.Lines(readme(t, "sh", "make ")) {
		target := strings.Fields(line)[1]
		if out, err := exec.Command("make", "--dry-run", target).CombinedOutput(); err != nil {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
}

// readme returns the first block of the README in a language that has this text.
func readme(t *testing.T, lang, text string) string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := markdown.Blocks(string(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Lang == lang && strings.Contains(b.Text, text) {
			return b.Text
		}
	}
	t.Fatalf("README.md has no %s block with %q", lang, text)
	return ""
}
