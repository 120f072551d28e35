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

	"github.com/holdfast-go/holdfast/internal/servers"
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
	var pages []string
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
		pages = append(pages, filepath.Join(dir, name))
	}
	typeset(t, pages)
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

// typeset lets groff look for mistakes in pages.
func typeset(t *testing.T, pages []string) {
	t.Helper()
	groff := servers.Installed(t, "groff-base", "groff")
	for _, page := range pages {
		out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput()
		if err != nil || len(out) != 0 {
			t.Errorf("groff: %v\n%s", err, out)
		}
	}
}
