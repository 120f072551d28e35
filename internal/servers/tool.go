package servers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Installed returns the path of the first program that exists. pkg is the package to
// install. In Debian, the folder with the servers is not in the PATH of plain users.
func Installed(tb TB, pkg string, names ...string) string {
	tb.Helper()
	for _, name := range names {
		for _, candidate := range []string{name, filepath.Join("/usr/sbin", name)} {
			if path, err := exec.LookPath(candidate); err == nil {
				return path
			}
		}
	}
	missing(tb, strings.Join(names, " or "), pkg)
	return ""
}

// chosen is Installed, unless a variable names a program. Then there is no fallback to a
// different program.
func chosen(tb TB, variable, pkg string, names ...string) string {
	tb.Helper()
	name := os.Getenv(variable)
	if name == "" {
		return Installed(tb, pkg, names...)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	return path
}

// missing ends a test whose server is not installed, and reports what was not tested. With
// HOLDFAST_TEST_ALL, as in CI, a missing server is a failure.
func missing(tb TB, name, pkg string) {
	tb.Helper()
	Lacking(tb, "no %s in PATH or /usr/sbin: install the package %s", name, pkg)
}

// query sends input to a program, and returns the output without the last end of line. The
// error shows the messages of the program. A program that hangs is killed.
func query(cmd *exec.Cmd, input string) (string, error) {
	var output, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &output, &complaint
	if err := cmd.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSuffix(output.String(), "\n"), nil
}
