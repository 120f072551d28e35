// Package prover builds the command holdfast-verify, of the unchanged Holdfast or with a
// bug, and runs the command.
package prover

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/publish"
)

// lastTime is how long an interrupted run may take to end its servers and processes.
const lastTime = time.Minute

// A Program is the path of a command holdfast-verify.
type Program string

// Build builds the command at a path, with more flags of "go build". The program knows its
// commit, if git does.
func Build(ctx context.Context, path string, flags ...string) (Program, error) {
	// Go notes no commit with -buildvcs=false.
	const name = "github.com/holdfast-go/holdfast/internal/build.commit"
	args := append([]string{"-o", path, "-ldflags=-X=" + name + "=" + publish.Commit(ctx)}, flags...)
	return Program(path), Compile(ctx, append(args, "github.com/holdfast-go/holdfast/cmd/holdfast-verify")...)
}

// Sum returns a hash of the program.
func (p Program) Sum() (string, error) {
	file, err := os.Open(string(p))
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Compile runs "go build" with args.
func Compile(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// Verify runs verify and returns its report, with or without violations. It returns an
// error without a report, or if the exit code does not match the report. When ctx ends,
// verify is interrupted, and has a minute to end its servers and processes.
func (p Program) Verify(ctx context.Context, flags ...string) (*verify.Report, error) {
	cmd := exec.CommandContext(ctx, string(p), append([]string{"--json"}, flags...)...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = lastTime
	failed := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", cmd, context.Cause(ctx))
	}
	var r *verify.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, errors.Join(failed, err), &complaints)
	}
	found, code := r.Err(), 0
	switch {
	case errors.Is(found, verify.ErrUnproved):
		code = cli.ExitUnproved
	case found != nil:
		code = cli.ExitFailed
	}
	if cmd.ProcessState.ExitCode() != code {
		return nil, fmt.Errorf("%s has ended with %v, and its report says %v\n%s", cmd, failed, found, &complaints)
	}
	return r, nil
}
