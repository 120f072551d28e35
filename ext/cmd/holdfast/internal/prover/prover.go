// Package prover builds the command holdfast, as it is or with something wrong with
// it, and lets its verify look.
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
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify"
)

// lastTime is how long a run that is interrupted may take to end what it has
// started.
const lastTime = time.Minute

// A Program is the path of a command holdfast.
type Program string

// Build builds the command at a path, with more flags of "go build". The program knows
// its commit, if git does.
func Build(ctx context.Context, path string, flags ...string) (Program, error) {
	// Go notes no commit with -buildvcs=false. Without git there is none to be told.
	commit, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=12").Output()
	const name = "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/build.commit"
	args := append([]string{"-o", path, "-ldflags=-X=" + name + "=" + strings.TrimSpace(string(commit))}, flags...)
	return Program(path), Compile(ctx, append(args, "github.com/holdfast-go/holdfast/ext/cmd/holdfast")...)
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

// Compile runs "go build" with these arguments.
func Compile(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// Verify runs verify and returns its report, whatever that says. It is an error if
// there is none, and if the program has an end that is not that of its report. When
// ctx ends, verify is interrupted, and has a minute to end what it has started.
func (p Program) Verify(ctx context.Context, flags ...string) (*verify.Report, error) {
	cmd := exec.CommandContext(ctx, string(p), append([]string{"verify", "--json"}, flags...)...)
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
	if found := r.Err(); (found == nil) != (failed == nil) {
		return nil, fmt.Errorf("%s has ended with %v, and its report says %v\n%s", cmd, failed, found, &complaints)
	}
	return r, nil
}
