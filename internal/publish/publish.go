// Package publish is the common frame of the commands bench, torture, mutants, tally and
// replay, which run for a long time. All but replay save results in docs/results.
package publish

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Main runs a command. A signal that ends a program ends the context. The exit code is 0 if
// all is well, 1 after an error, and 2 after flag.ErrHelp: the flag set has reported an error
// in the arguments.
func Main(name string, execute func(ctx context.Context, args []string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := execute(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Savable returns an error if a command cannot save the named files in a folder. A command
// calls Savable before all the work. The folder has to exist. A part of the results must not
// replace a file, because readers may expect complete results there.
func Savable(folder string, part bool, names ...string) error {
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("-save: %w", err)
	}
	for _, name := range names {
		file := filepath.Join(folder, name)
		if _, err := os.Stat(file); part && err == nil {
			return fmt.Errorf("-save: %s exists, and the arguments choose only a part of the results: save the part into another folder", file)
		}
	}
	return nil
}
