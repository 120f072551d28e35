package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var man = flag.String("man", "", "write the manual pages into this `folder`")

// TestManPages writes a manual page for each command. Only tests do, so that the
// command does not link what writes manual pages.
func TestManPages(t *testing.T) {
	dir := *man
	if dir == "" {
		dir = t.TempDir()
	}
	header := &doc.GenManHeader{Section: "1", Source: "Holdfast", Manual: "Holdfast"}
	if err := doc.GenManTree(root(), header, dir); err != nil {
		t.Fatal(err)
	}
	for _, command := range visible(root()) {
		name := strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s has no synopsis:\n%s", name, page)
		}
		typeset(t, filepath.Join(dir, name))
	}
}

// visible returns a command and those below that its help lists.
func visible(command *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{command}
	for _, c := range command.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, visible(c)...)
		}
	}
	return all
}

// typeset lets groff look for mistakes in a page, where groff is installed.
func typeset(t *testing.T, page string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Logf("groff is missing: %s is not checked", page)
		return
	}
	out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
