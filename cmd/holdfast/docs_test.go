//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/markdown"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

const repository = "../.."

func blocks(t *testing.T, document string) []markdown.Block {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	found, err := markdown.Blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDocsCommands runs the blocks of shell commands that the documents mark
// for it, with stand-ins for the reader's own scripts.
func TestDocsCommands(t *testing.T) {
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	if !testing.Short() {
		t.Setenv("PATH", builtVerifier(t)+":"+os.Getenv("PATH"))
	}
	ran := 0
	for _, document := range documents {
		for _, block := range blocks(t, document) {
			if !block.Tested || block.Lang != "sh" {
				continue
			}
			if testing.Short() && strings.Contains(block.Text, "holdfast verify") {
				continue // takes 10 s: make prove
			}
			ran++
			var out []byte
			err := insist(func() (err error) {
				out, err = runBlock(t, block)
				return err
			})
			exit := (*exec.ExitError)(nil)
			switch {
			case errors.As(err, &exit) && exit.ExitCode() == cli.ExitUnproved:
				// On a busy machine verify may see too few grants, though not none.
				unproved.Logf(t, "%s:%d: %v\n%s", document, block.Line, err, out)
			case err != nil:
				t.Errorf("%s:%d: %v\n%s", document, block.Line, err, out)
			}
		}
	}
	if ran == 0 {
		t.Error("found no commands to run")
	}
}

var scripts = regexp.MustCompile(`\./(\w+\.sh)`)

// runBlock runs a block in a new folder with a store of its own.
func runBlock(t *testing.T, block markdown.Block) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range scripts.FindAllStringSubmatch(block.Text, -1) {
		if err := os.WriteFile(filepath.Join(dir, name[1]), []byte("#!/bin/sh\necho $0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-eu")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(block.Text)
	cmd.Env = append(os.Environ(), "HOLDFAST_STORE=file://"+dir+"/locks")
	return cmd.CombinedOutput()
}

// TestDocsJSON holds the example of JSON against what the command writes.
func TestDocsJSON(t *testing.T) {
	for _, block := range blocks(t, repository+"/docs/cli.md") {
		if block.Lang != "json" {
			continue
		}
		var state keyState
		d := json.NewDecoder(strings.NewReader(block.Text))
		d.DisallowUnknownFields()
		if err := d.Decode(&state); err != nil {
			t.Fatalf("docs/cli.md:%d: %v", block.Line, err)
		}
		var written bytes.Buffer
		if err := cli.WriteJSON(&written, state); err != nil {
			t.Fatal(err)
		}
		if written.String() != block.Text {
			t.Errorf("docs/cli.md:%d: the command writes\n%s", block.Line, written.String())
		}
		return
	}
	t.Error("docs/cli.md shows no JSON")
}

// TestDocsFlags looks for every flag of every command in the manual.
func TestDocsFlags(t *testing.T) {
	manual, err := os.ReadFile(repository + "/docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`--[a-z][a-z-]+`)
	for _, cmd := range root().Commands() {
		if !strings.Contains(string(manual), "holdfast "+cmd.Name()) {
			t.Errorf("docs/cli.md does not mention holdfast %s", cmd.Name())
		}
		for _, flag := range flags.FindAllString(cmd.NonInheritedFlags().FlagUsages(), -1) {
			if flag != "--help" && !strings.Contains(string(manual), flag) {
				t.Errorf("docs/cli.md does not mention %s of holdfast %s", flag, cmd.Name())
			}
		}
	}
}
