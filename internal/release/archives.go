package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A target is a system that the commands are built for.
type target struct{ os, arch string }

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
	{"freebsd", "amd64"}, {"freebsd", "arm64"},
}

// dist is the folder that receives the archives of a version. Git ignores bin.
func (t tree) dist(version string) string { return filepath.Join(t.dir, "bin", version) }

// lean leaves out the parts that no user looks at: the symbol tables and the trace pages
// of gRPC. The trace pages keep the linker from dropping methods, a third of the program.
var lean = []string{"-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w"}

// archiveAll builds the archives for all targets.
func (t tree) archiveAll(version string) error { return t.archives(version, targets) }

// archives builds an archive of the programs for each target, from the committed tree, and
// a file of the checksums.
func (t tree) archives(version string, targets []target) error {
	dist := t.dist(version)
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "holdfast-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b := builder{tree: tree{filepath.Join(scratch, "tree")}, version: version, scratch: scratch}
	if _, err := run(".", "git", "clone", "--quiet", t.dir, b.dir); err != nil {
		return err
	}
	if err := b.prepare(); err != nil {
		return err
	}
	var sums strings.Builder
	for _, to := range targets {
		name, err := b.archive(to, dist)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", to.os, to.arch, err)
		}
		text, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), name)
	}
	return os.WriteFile(filepath.Join(dist, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// A builder builds the commands from module archives, as users do who install the
// commands.
type builder struct {
	tree
	version  string
	scratch  string   // with the folders tree, proxy, go, cache and share
	commands []string // the folders of the programs
	env      []string
}

// prepare packs the modules, and writes the manual pages and the completions.
func (b *builder) prepare() error {
	for _, command := range []string{"cmd/holdfast", "cmd/holdfast-verify"} {
		if _, err := os.Stat(filepath.Join(b.dir, command, "go.mod")); err == nil {
			b.commands = append(b.commands, command)
		}
	}
	proxy := filepath.Join(b.scratch, "proxy")
	if err := b.pack(b.version, proxy); err != nil {
		return err
	}
	env, err := proxied(proxy, filepath.Join(b.scratch, "cache"))
	if err != nil {
		return err
	}
	b.env = append(env, "GOPATH="+filepath.Join(b.scratch, "go"), "GOBIN=")
	share := filepath.Join(b.scratch, "share")
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(share, dir), 0o755); err != nil {
			return err
		}
	}
	host := target{runtime.GOOS, runtime.GOARCH}
	if err := b.install(host); err != nil {
		return err
	}
	committed, err := run(b.dir, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	date := []string{"SOURCE_DATE_EPOCH=" + strings.TrimSpace(committed)} // of the manual pages
	if _, err := runWith(filepath.Join(b.dir, "cmd", "holdfast"), date, "go", "test", "-run=^TestManPages$", ".", "-args", "-man="+filepath.Join(share, "man")); err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := run(b.scratch, b.program(host, "holdfast"), "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(share, "completions", "holdfast."+shell), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// install builds the commands for a target.
func (b *builder) install(to target) error {
	env := append(slices.Clone(b.env), "GOOS="+to.os, "GOARCH="+to.arch)
	for _, command := range b.commands {
		args := append(append([]string{"install"}, lean...), path.Join(root, command)+"@"+b.version)
		if _, err := runWith(b.scratch, env, "go", args...); err != nil {
			return err
		}
	}
	return nil
}

// program returns the path where install puts a command.
func (b *builder) program(to target, name string) string {
	bin := filepath.Join(b.scratch, "go", "bin")
	if to.os != runtime.GOOS || to.arch != runtime.GOARCH {
		bin = filepath.Join(bin, to.os+"_"+to.arch)
	}
	return filepath.Join(bin, name+exe(to.os))
}

// exe returns the suffix of program files.
func exe(system string) string {
	if system == "windows" {
		return ".exe"
	}
	return ""
}

// archive writes the archive for a target, and returns the name of the archive.
func (b *builder) archive(to target, dist string) (string, error) {
	if err := b.install(to); err != nil {
		return "", err
	}
	files, err := b.files(to)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("holdfast_%s_%s_%s", strings.TrimPrefix(b.version, "v"), to.os, to.arch)
	pack := tarball
	if to.os == "windows" {
		pack = zipped
		name += ".zip"
	} else {
		name += ".tar.gz"
	}
	out, err := os.Create(filepath.Join(dist, name))
	if err != nil {
		return "", err
	}
	return name, errors.Join(pack(out, files), out.Close())
}

// A member is a file in an archive.
type member struct {
	name, file string
	mode       int64
}

// files lists the files in the archive for a target.
func (b *builder) files(to target) (all []member, err error) {
	for _, command := range b.commands {
		program := b.program(to, path.Base(command))
		all = append(all, member{filepath.Base(program), program, 0o755})
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		all = append(all, member{name, filepath.Join(b.dir, name), 0o644})
	}
	share := filepath.Join(b.scratch, "share")
	for _, dir := range []string{"man", "completions"} {
		entries, err := os.ReadDir(filepath.Join(share, dir))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			all = append(all, member{dir + "/" + e.Name(), filepath.Join(share, dir, e.Name()), 0o644})
		}
	}
	return all, nil
}

func tarball(out io.Writer, files []member) error {
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)
	for _, m := range files {
		text, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: m.name, Mode: m.mode, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), compressed.Close())
}

func zipped(out io.Writer, files []member) error {
	w := zip.NewWriter(out)
	for _, m := range files {
		text, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		f, err := w.Create(m.name)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			return err
		}
	}
	return w.Close()
}
