// Command release releases all modules of the repository at one version:
//
//	make release VERSION=v0.1.0
//
// The command first checks the tree: no change is uncommitted, CHANGELOG.md has an entry
// for the version, no page says that the version is not released, the version has no tag,
// and "make check rehearsal" passes. Then the modules require each other at the version,
// in a commit; the programs are built into archives in the folder bin/v0.1.0; and each
// module gets a tag with the changelog's entry as the text. The command pushes no commit
// and no tag: the last line of output has the push.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	version, err := parse(os.Args[1:])
	if err == nil {
		err = tree{"."}.release(version, tree.check, tree.archiveAll)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// parse returns the version that the arguments name.
func parse(args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("got %q, want one version, such as v0.1.0", args)
	}
	version := args[0]
	switch {
	case semver.Canonical(version) != version:
		return "", fmt.Errorf("%q is no full version, such as v0.1.0", version)
	case semver.Compare(version, "v2.0.0-0") >= 0:
		return "", fmt.Errorf("%s: from v2 on, paths of modules end in the major version, which these lack", version)
	}
	return version, nil
}

// check runs the checks that a change must pass, and the rehearsal of a release.
func (t tree) check() error {
	cmd := exec.Command("make", "check", "rehearsal")
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, os.Stdout, os.Stderr
	return cmd.Run()
}

// release releases a version. The tags come last, so that a failed release can be retried.
func (t tree) release(version string, check func(tree) error, archive func(tree, string) error) error {
	if err := t.refuse(version); err != nil {
		return err
	}
	if err := check(t); err != nil {
		return fmt.Errorf("the tree fails its checks: %w", err)
	}
	if err := t.commit(version); err != nil {
		return err
	}
	if err := archive(t, version); err != nil {
		return err
	}
	tags, err := t.tag(version)
	if err != nil {
		return err
	}
	fmt.Printf("released %s in this checkout, with archives in %s; to publish the release:\n  git push --atomic origin HEAD %s\n", version, t.dist(version), strings.Join(tags, " "))
	return nil
}

// refuse returns why the tree cannot be released at a version, or nil.
func (t tree) refuse(version string) error {
	var errs []error
	if changes, err := run(t.dir, "git", "status", "--porcelain"); err != nil {
		errs = append(errs, err)
	} else if changes != "" {
		errs = append(errs, fmt.Errorf("the tree has changes that are not committed:\n%s", changes))
	}
	if _, err := t.entry(version); err != nil {
		errs = append(errs, err)
	}
	if pages, err := matches(t.dir, "grep", "-l", "-F", version+" is not released", "--", "*.md"); err != nil {
		errs = append(errs, err)
	} else if pages != "" {
		errs = append(errs, fmt.Errorf("these pages say that %s is not released:\n%s", version, pages))
	}
	all, err := t.modules()
	errs = append(errs, err)
	for _, m := range all {
		tag := m.tag(version)
		if found, err := matches(t.dir, "rev-parse", "--verify", "--quiet", "refs/tags/"+tag); err != nil {
			errs = append(errs, err)
		} else if found != "" {
			errs = append(errs, fmt.Errorf("the tag %s exists: a version is never released twice", tag))
		}
	}
	return errors.Join(errs...)
}

// matches runs a git command that exits with 1 if the command finds nothing, and returns
// the matches.
func matches(dir string, args ...string) (string, error) {
	found, err := run(dir, "git", args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return "", nil
	}
	return found, err
}

// entry returns the entry of a version in CHANGELOG.md.
func (t tree) entry(version string) (string, error) {
	text, err := os.ReadFile(filepath.Join(t.dir, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(version, "v")
	var entry strings.Builder
	inside := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "## ") {
			inside = strings.HasPrefix(line, "## ["+name+"]")
			continue
		}
		if inside {
			entry.WriteString(line)
		}
	}
	if strings.TrimSpace(entry.String()) == "" {
		return "", fmt.Errorf("CHANGELOG.md has no entry %q: rename Unreleased, and add a new one above the entry", "## ["+name+"]")
	}
	return strings.TrimSpace(entry.String()) + "\n", nil
}

// commit sets the version in a commit.
func (t tree) commit(version string) error {
	changed, err := t.setVersion(version)
	if err != nil || len(changed) == 0 {
		return err
	}
	args := append([]string{"commit", "--quiet", "-m", "all: release " + version, "--"}, changed...)
	_, err = run(t.dir, "git", args...)
	return err
}

// tag tags the modules for users, and returns the tags.
func (t tree) tag(version string) (tags []string, err error) {
	entry, err := t.entry(version)
	if err != nil {
		return nil, err
	}
	all, err := t.modules()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.private() {
			continue
		}
		tag := m.tag(version)
		text := m.path + " " + version + "\n\n" + entry
		if _, err := run(t.dir, "git", "tag", "--annotate", "--cleanup=verbatim", "-m", text, tag); err != nil {
			return nil, err
		}
		tags = append(tags, tag)
	}
	return tags, nil
}
