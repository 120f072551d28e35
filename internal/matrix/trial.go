package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/publish"
)

// A row is what ran on a server.
type row struct {
	server         string // with the version
	passed, failed int    // tests
	skipped        int
	verified       bool // verify ran
	report         report
	broken         bool   // verify found a violation
	log            string // of what failed
}

// A report is the part of a report of verify that the table shows.
type report struct {
	Server             string
	Operations, Grants int
	Violations         map[string]int
}

func (r row) ok() bool { return r.failed == 0 && r.passed > 0 && !r.broken }

// try runs the tests and verify on a server.
func try(ctx context.Context, s server, verifier string, length time.Duration) (row, error) {
	var r row
	for _, t := range s.engine.tests {
		if err := r.test(ctx, s, t); err != nil {
			return r, err
		}
	}
	if s.engine.start == "" {
		return r, r.ask(ctx, s)
	}
	return r, r.verify(ctx, s, verifier, length)
}

// test runs a suite and counts its tests. A failed test is no error.
func (r *row) test(ctx context.Context, s server, t suite) error {
	cmd := with(s, command(ctx, "go", "test", "-json", "-count=1", "-short", "-parallel=8", "-timeout=5m", "-run="+t.run, "./"+t.dir))
	cmd.Stdout = nil
	text, err := cmd.Output()
	if e := (*exec.ExitError)(nil); err != nil && !errors.As(err, &e) {
		return err
	}
	failed := r.failed
	if err := r.count(text); err != nil {
		return err
	}
	if err != nil && r.failed == failed { // no test failed, but the build or TestMain
		r.failed++
	}
	return nil
}

// count counts the results in the output of go test -json.
func (r *row) count(text []byte) error {
	output := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var event struct{ Action, Test, Output string }
		if err := d.Decode(&event); err != nil {
			return fmt.Errorf("output of go test: %w", err)
		}
		switch event.Action {
		case "output":
			output[event.Test] += event.Output
			continue
		case "fail":
			r.log += output[event.Test]
		}
		if event.Test == "" {
			continue
		}
		switch event.Action {
		case "pass":
			r.passed++
		case "skip":
			r.skipped++
		case "fail":
			r.failed++
		}
	}
	return nil
}

// verify lets the verifier start the server.
func (r *row) verify(ctx context.Context, s server, verifier string, length time.Duration) error {
	cmd := with(s, command(ctx, verifier, "--start="+s.engine.start, "--for="+length.String(), "--nemesis=kill,partition", "--json"))
	cmd.Stdout = nil
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if json.Unmarshal(text, &r.report) != nil { // verify could not run, and has said why
		r.report.Server = s.String()
	}
	r.verified, r.server, r.broken = true, r.report.Server, err != nil
	if r.broken {
		r.log += string(text)
	}
	return nil
}

// ask asks a program without a store for its version.
func (r *row) ask(ctx context.Context, s server) error {
	_, program, _ := strings.Cut(s.setting, "=")
	if program == "" {
		program = s.engine.name
	}
	text, err := exec.CommandContext(ctx, program, "--version").Output()
	r.server, _, _ = strings.Cut(string(text), "\n")
	return err
}

// with lets a command start the server.
func with(s server, cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = os.Environ()
	if s.setting != "" {
		cmd.Env = append(cmd.Env, s.setting)
	}
	return cmd
}

func (s server) String() string {
	if s.setting == "" {
		return "the installed " + s.engine.name
	}
	return filepath.Base(s.setting)
}

// cells are the columns of the table.
func (r row) cells() []string {
	verify := "–"
	if r.verified {
		verify = fmt.Sprintf("%s locks, %s", publish.Thousands(r.report.Grants), violations(r.report.Violations))
	}
	result := "passed"
	if !r.ok() {
		result = "**failed**"
	}
	return []string{r.server, strconv.Itoa(r.passed), strconv.Itoa(r.skipped), strconv.Itoa(r.failed), verify, result}
}

func violations(found map[string]int) string {
	sum := 0
	for _, n := range found {
		sum += n
	}
	if sum == 1 {
		return "1 violation"
	}
	return fmt.Sprintf("%d violations", sum)
}

func table(rows []row) []byte {
	var b bytes.Buffer
	publish.Head(&b, "server", "tests passed", "not applicable", "failed", "verify", "result")
	for _, r := range rows {
		publish.Row(&b, r.cells()...)
	}
	return b.Bytes()
}
