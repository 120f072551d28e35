package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// lookPath finds a program as a shell does. The errors have the exit codes of a shell.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // the user wants . in PATH
		return path, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound) && !inPath(name):
		return "", cli.Failure(cli.ExitNotFound, fmt.Errorf("there is no command %q: check its name and PATH", name))
	}
	return "", cli.Failure(cli.ExitNotRunnable, fmt.Errorf("%q is not an executable file", name))
}

// inPath reports whether PATH has a file of the given name, executable or not.
func inPath(name string) bool {
	if name == "" || strings.ContainsRune(name, filepath.Separator) {
		return false
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// notStarted returns the exit for a program that was found but did not start.
func notStarted(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) { // the interpreter of a script is missing
		return cli.Failure(cli.ExitNotFound, fmt.Errorf("cannot execute %q, or the interpreter that its first line names: %w", name, err))
	}
	return cli.Failure(cli.ExitNotRunnable, fmt.Errorf("cannot execute %q: %w", name, err))
}
