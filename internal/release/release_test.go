package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/servers"
)

const next = "v0.99.0"

// checkout clones this repository, and gives the changelog an entry for the next
// version.
func checkout(t *testing.T) tree {
	t.Helper()
	c := tree{t.TempDir()}
	if _, err := run(".", "git", "clone", "--quiet", "../..", c.dir); err != nil {
		servers.Lacking(t, "the tree is no checkout that git can clone: %v", err)
	}
	c.git(t, "config", "user.name", "Releaser")
	c.git(t, "config", "user.email", "releaser@example.com")
	c.git(t, "config", "commit.gpgsign", "false")
	c.git(t, "config", "tag.gpgsign", "false")
	c.write(t, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [0.99.0] - 2026-11-23\n\n### Added\n\n- Wings.\n\n## [0.98.0] - 2026-11-22\n\n- Feet.\n")
	c.git(t, "commit", "--quiet", "-am", "all: add wings")
	return c
}

func (t tree) git(tb testing.TB, args ...string) string {
	tb.Helper()
	out, err := run(t.dir, "git", args...)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (t tree) write(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(t.dir, name), []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func passes(tree) error          { return nil }
func nothing(tree, string) error { return nil }

func TestVersions(t *testing.T) {
	for _, args := range []string{"", "0.1.0", "v0.1", "v1", "v0.1.0+meta", "v0.01.0", "v2.0.0", "latest", "v0.1.0 v0.2.0"} {
		if version, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%q is taken for %s", args, version)
		}
	}
	for _, args := range []string{"v0.1.0", "v1.2.3", "v1.0.0-rc.1"} {
		if version, err := parse([]string{args}); version != args || err != nil {
			t.Errorf("%q is taken for %s, %v", args, version, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := checkout(t)
	before := c.git(t, "rev-parse", "HEAD")
	for name, test := range map[string]struct {
		spoil   func(tree)
		version string
		check   func(tree) error
		want    string
	}{
		"a change":        {spoil: func(c tree) { c.write(t, "LICENSE", "mine") }, want: "not committed"},
		"a new file":      {spoil: func(c tree) { c.write(t, "new.go", "package holdfast") }, want: "new.go"},
		"no entry":        {version: "v0.97.0", want: `no entry "## [0.97.0]"`},
		"tag of the root": {spoil: func(c tree) { c.git(t, "tag", next) }, want: "the tag v0.99.0 exists"},
		"tag of a store":  {spoil: func(c tree) { c.git(t, "tag", "redislock/"+next) }, want: "the tag redislock/v0.99.0 exists"},
		"a failing check": {check: func(tree) error { return errors.New("red") }, want: "fails its checks: red"},
		"no changelog":    {spoil: func(c tree) { c.git(t, "rm", "-q", "CHANGELOG.md"); c.git(t, "commit", "-qm", "x") }, want: "CHANGELOG.md"},
		"a page": {spoil: func(c tree) {
			c.write(t, "docs/new.md", "v0.99.0 is not released yet.\n")
			c.git(t, "add", ".")
			c.git(t, "commit", "-qm", "x")
		}, want: "docs/new.md"},
		"a git that cannot look": {spoil: func(c tree) { c.git(t, "config", "grep.threads", "many") }, want: "grep.threads"},
		"an empty section": {version: "v0.96.0", spoil: func(c tree) {
			c.write(t, "CHANGELOG.md", "## [0.96.0]\n\n## [0.95.0]\n- x\n")
			c.git(t, "commit", "-qam", "x")
		}, want: "no entry"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				c.git(t, "reset", "--quiet", "--hard", before)
				c.git(t, "clean", "--quiet", "-fd")
				c.git(t, "config", "grep.threads", "0")
				for _, tag := range strings.Fields(c.git(t, "tag")) {
					c.git(t, "tag", "-d", tag)
				}
			}()
			if test.spoil != nil {
				test.spoil(c)
			}
			head, tags := c.git(t, "rev-parse", "HEAD"), c.git(t, "tag")
			check := test.check
			if check == nil {
				check = func(tree) error { t.Error("the checks ran"); return nil }
			}
			version := test.version
			if version == "" {
				version = next
			}
			if err := c.release(version, check, nothing); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the release ends with %v, want %s", err, test.want)
			}
			if c.git(t, "rev-parse", "HEAD") != head || c.git(t, "tag") != tags {
				t.Error("the refused release has left a commit or a tag")
			}
		})
	}
}

// TestRelease releases a clone, and gets modules from its tags, as the go command gets
// modules of a repository without any proxy. With -rehearse the test also builds an
// archive.
func TestRelease(t *testing.T) {
	c := checkout(t)
	archive := nothing
	if *rehearse {
		archive = func(c tree, version string) error {
			return c.archives(version, []target{{runtime.GOOS, runtime.GOARCH}})
		}
	}

	if err := c.release(next, passes, func(tree, string) error { return errors.New("disk full") }); err == nil {
		t.Fatal("a release without archives succeeds")
	}
	if tags := c.git(t, "tag"); tags != "" {
		t.Errorf("a release that failed leaves tags:\n%s", tags)
	}
	if err := c.release(next, passes, archive); err != nil {
		t.Fatal(err)
	}

	if subject := c.git(t, "log", "-1", "--format=%s"); subject != "all: release v0.99.0" {
		t.Errorf("the last commit is %q", subject)
	}
	if changes := c.git(t, "status", "--porcelain"); changes != "" {
		t.Errorf("the release leaves changes:\n%s", changes)
	}
	if old := c.git(t, "grep", "-lE", root+"[a-z/]* v", "HEAD", "--", "*go.mod", "go.work"); old == "" {
		t.Error("no file names a version of the modules")
	}
	for line := range strings.Lines(c.git(t, "grep", "-hE", root+"[a-z/-]* v", "HEAD", "--", "*go.mod", "go.work")) {
		if !strings.Contains(line, " "+next) {
			t.Errorf("a module requires %q", line)
		}
	}

	tags := strings.Fields(c.git(t, "tag"))
	for _, tag := range []string{next, "redislock/" + next, "redislock/goredis/" + next, "cmd/holdfast/" + next} {
		if !slices.Contains(tags, tag) {
			t.Errorf("the tags are %q, without %s", tags, tag)
		}
	}
	if slices.Contains(tags, "internal/release/"+next) {
		t.Error("internal/release has a tag, though no user gets the module")
	}
	if got, want := c.git(t, "tag", "-l", "--format=%(contents)", "redislock/"+next), root+"/redislock v0.99.0\n\n### Added\n\n- Wings."; got != want {
		t.Errorf("the tag says\n%s\nwant\n%s", got, want)
	}

	if !testing.Short() || *rehearse { // it takes half a minute: make prove
		getFromTags(t, c)
	}
	if *rehearse {
		inspect(t, c)
	}
}

// getFromTags builds a program in an empty folder, with modules that the go command
// gets from the clone in place of the public repository.
func getFromTags(t *testing.T, c tree) {
	t.Helper()
	env, err := proxied(t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, env: append(env, "GOSUMDB=off", "GONOPROXY="+root,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+filepath.ToSlash(c.dir)+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+root)}
	dir := s.TempDir()
	s.in(dir, "go", "mod", "init", "example.com/program")
	tree{dir}.write(t, "main.go", act{what: "filelock", program: opened}.source())
	s.in(dir, "go", "get", root+"/filelock@"+next, root+"/redislock/goredis@"+next)
	s.in(dir, "go", "build", "-o", os.DevNull, ".")
	if got := s.required(dir)[root+"/redislock"]; got != next {
		t.Errorf("the program has redislock %q, want %s", got, next)
	}
}

// inspect looks into the archive of a release, and runs the command in it.
func inspect(t *testing.T, c tree) {
	t.Helper()
	name := fmt.Sprintf("holdfast_0.99.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	text, err := os.ReadFile(filepath.Join(c.dist(next), name))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(c.dist(next), "SHA256SUMS"))
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(text), name); string(sums) != want || err != nil {
		t.Errorf("SHA256SUMS has %q, %v, want %q", sums, err, want)
	}
	compressed, err := gzip.NewReader(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(compressed); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, filepath.Dir(h.Name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, h.Name), content, os.FileMode(h.Mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "man/holdfast.1", "man/holdfast-run.1", "completions/holdfast.bash", "completions/holdfast.zsh"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("the archive has no %s: %v", name, err)
		}
	}
	out, err := run(dir, filepath.Join(dir, "holdfast"), "version")
	if err != nil || !strings.HasPrefix(out, "holdfast "+next+" ") {
		t.Errorf("holdfast version says %q, %v", out, err)
	}
	t.Logf("%s has %.1f MB", name, float64(len(text))/1e6)
}
