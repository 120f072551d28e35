package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	alike          bool   // a look-alike
	refusal        string // of a look-alike, by the store
	log            string // of what failed
}

// A report is the part of a report of verify that the table shows.
type report struct {
	Server             string
	Operations, Grants int
	Violations         map[string]int
	Invalid            string // why the run has proved nothing, as on a slow machine
}

func (r row) ok() bool {
	if r.refusal != "" {
		return true
	}
	return r.failed == 0 && r.passed+r.report.Grants > 0 && !r.broken
}

// try runs the tests and verify on a server.
func try(ctx context.Context, s server, verifier string, length time.Duration) (row, error) {
	var r row
	if s.engine.url != "" {
		return r, r.meet(ctx, s, verifier, length)
	}
	for _, t := range s.engine.tests {
		if err := r.test(ctx, s, t); err != nil {
			return r, err
		}
	}
	if s.engine.start == "" {
		r.ask(ctx, s)
		return r, nil
	}
	return r, r.verify(ctx, s, verifier, length)
}

// test runs a suite and counts its tests. A failed test is no error.
func (r *row) test(ctx context.Context, s server, t suite) error {
	cmd := with(s, command(ctx, "go", "test", "-json", "-count=1", "-short", "-parallel=8", "-timeout=5m", "-run="+t.run, "./"+t.dir))
	cmd.Stdout = nil
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return ctx.Err()
	}
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
		case "output", "build-output":
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

// tries is how often verify runs on a server until a run has proved something.
const tries = 3

// verify lets the verifier start the server.
func (r *row) verify(ctx context.Context, s server, verifier string, length time.Duration) error {
	before := r.log
	for range tries {
		r.report, r.log = report{}, before
		if err := r.verifyOnce(ctx, s, verifier, length); err != nil || r.report.Invalid == "" {
			return err
		}
	}
	return nil
}

func (r *row) verifyOnce(ctx context.Context, s server, verifier string, length time.Duration) error {
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
func (r *row) ask(ctx context.Context, s server) {
	_, program, _ := strings.Cut(s.setting, "=")
	if program == "" {
		program = s.engine.name
	}
	text, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil { // as when the program is not installed, which the tests have reported
		r.server = s.String()
		return
	}
	r.server, _, _ = strings.Cut(string(text), "\n")
}

// with lets a command start the server. A server that is not installed is a failure.
func with(s server, cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "HOLDFAST_TEST_ALL=1")
	if s.setting != "" {
		cmd.Env = append(cmd.Env, s.setting)
	}
	return cmd
}

func (s server) String() string {
	if s.setting == "" {
		return "the installed " + s.engine.name
	}
	return s.engine.name + " by " + s.setting
}

// cells are the columns of the table, or of the table of look-alikes.
func (r row) cells() []string {
	verify := "–"
	if r.verified {
		verify = fmt.Sprintf("%s locks, %s", publish.Thousands(r.report.Grants), violations(r.report.Violations))
	}
	switch {
	case r.refusal != "":
		return []string{r.server, "refused: " + r.refusal}
	case r.alike && r.ok():
		return []string{r.server, verify}
	case r.alike:
		return []string{r.server, "**failed** " + verify}
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
	var b, alike bytes.Buffer
	publish.Head(&b, "server", "tests passed", "not applicable", "failed", "verify", "result")
	for _, r := range rows {
		if r.alike {
			publish.Row(&alike, r.cells()...)
			continue
		}
		publish.Row(&b, r.cells()...)
	}
	if alike.Len() > 0 {
		fmt.Fprint(&b, "\n## Servers that only look like one\n\n`holdfast verify` opened the store there: it was refused, or ran with killed processes.\n\n")
		publish.Head(&b, "server", "verify")
		b.Write(alike.Bytes())
	}
	return b.Bytes()
}
