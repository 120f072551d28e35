// Command matrix runs the contract of each store, and a short "holdfast verify", on older
// and newer servers than the installed ones, and writes a table of what ran. Servers that only
// look like one are opened by "holdfast verify", which may be refused. scripts/servers --matrix
// gets the servers.
//
//	go run ./internal/matrix [-only NAMES] [-for 10s] [-save FILE]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/publish"
)

func main() { publish.Main("matrix", execute) }

var errFailed = errors.New("a server does not keep the contract")

func execute(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	only := flags.String("only", "", "run only these engines, `names` with commas between them")
	length := flags.Duration("for", 10*time.Second, "let verify run so long on each server")
	save := flags.String("save", "", "write the table into this `file`, too")
	if flags.Parse(args) != nil {
		return flag.ErrHelp
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("no arguments are known, and not %q", flags.Args())
	case *save != "" && *only != "":
		return errors.New("-save with -only: a part of the table must not replace the table")
	}
	names, err := chosen(*only)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "holdfast-matrix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	text := head(ctx, *length) // of the commit now, before the work
	verifier := filepath.Join(folder, "holdfast-verify")
	if err := command(ctx, "go", "build", "-o", verifier, "./cmd/holdfast-verify").Run(); err != nil {
		return fmt.Errorf("build holdfast-verify: %w", err)
	}
	servers, err := offered(ctx)
	if err != nil {
		return err
	}
	var rows []row
	for _, s := range servers {
		if !slices.Contains(names, s.engine.name) {
			continue
		}
		r, err := try(ctx, s, verifier, *length)
		if err != nil {
			return err
		}
		fmt.Fprint(out, r.log)
		fmt.Fprintln(out, r.cells())
		rows = append(rows, r)
		if *save != "" { // so that a run that is cut off leaves what it has shown
			if err := os.WriteFile(*save, append(slices.Clone(text), table(rows)...), 0o644); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "\n%s", table(rows))
	if slices.ContainsFunc(rows, func(r row) bool { return !r.ok() }) {
		return errFailed
	}
	return nil
}

// chosen returns the names of the engines to run.
func chosen(only string) (names []string, err error) {
	for _, e := range engines {
		names = append(names, e.name)
	}
	if only == "" {
		return names, nil
	}
	some := strings.Split(only, ",")
	for _, name := range some {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-only: no engine %q is known: want some of %s", name, strings.Join(names, ", "))
		}
	}
	return some, nil
}

// A server is what tests start with a setting in the environment.
type server struct {
	engine  engine
	setting string // VARIABLE=VALUE, or "" for the installed server
}

// offered returns the installed servers and those that scripts/servers --matrix gets.
func offered(ctx context.Context) ([]server, error) {
	cmd := command(ctx, "scripts/servers", "--matrix")
	cmd.Stdout = nil
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("get the servers: %w", err)
	}
	return parse(text)
}

// parse reads lines of an engine and a setting. The servers are ordered by engine, the
// installed server of each first. No look-alike is installed.
func parse(text []byte) (servers []server, err error) {
	settings := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		name, setting, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.ContainsFunc(engines, func(e engine) bool { return e.name == name }) {
			return nil, fmt.Errorf("no engine %q is known: want one of the names in engines.go", name)
		}
		settings[name] = append(settings[name], setting)
	}
	for _, e := range engines {
		if e.url == "" {
			servers = append(servers, server{e, ""})
		}
		for _, setting := range settings[e.name] {
			servers = append(servers, server{e, setting})
		}
	}
	return servers, nil
}

// command is a command whose messages people see.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

func head(ctx context.Context, length time.Duration) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# The stores on servers of every age

`+"`make matrix MATRIX=-save=docs/results/matrix.md`"+` has written this file, at commit %s.

- Contract: the tests of the contract, of rights, of passwords and of TLS in the package of the
  store, by `+"`go test -short`"+`. Not applicable: rules that the store does not have, and tests
  that the server is too old for.
- Verify: `+"`holdfast verify --for %v`"+` with killed processes and cut connections.

The first server of each engine is the one with which all tests run: a package of Debian 12, or for
NATS and S3 a Go module. The others come from packages of other Debian releases, from npm and from
the Go module proxy. MySQL 8 could not be had.

`, publish.Commit(ctx), length)
	return b.Bytes()
}
