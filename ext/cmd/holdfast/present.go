package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// A finding is what comes of a command that shows something.
type finding interface {
	Print(io.Writer) error // for people
	Err() error            // what has gone wrong, nil for nothing
}

// progress returns a function that shows a line in the place of the one before,
// to people only.
func progress(stderr io.Writer) func(line string) {
	if !terminal(stderr) {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintf(stderr, "\r\x1b[K%s", line) }
}

// present writes a finding to stdout. It fails if something has gone wrong.
func present(cmd *cobra.Command, found finding, asJSON bool) error {
	write := found.Print
	if asJSON {
		write = func(w io.Writer) error { return writeJSON(w, found) }
	}
	if err := errors.Join(write(cmd.OutOrStdout()), found.Err()); err != nil {
		return failure(exitFailed, err)
	}
	return nil
}

// untilSignal returns a context that ends with a signal. Its cause is then the
// exit that the signal asks for.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			cancel(failure(exitSignal+signalNumber(s), nil))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
