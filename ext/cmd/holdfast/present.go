package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

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

// A play is run by processes of this program, such as the servers of a demo.
type play struct {
	store  string
	script []string // the arguments that make this program one of the processes
	run    func(context.Context, cast) (finding, error)
	failed func(error) error // the exit of a run that could not be done
}

// A cast is what a play is run with.
type cast struct {
	command  []string // starts one of the processes
	stderr   io.Writer
	progress func(line string)
}

// perform runs a play and presents what comes of it.
func (p play) perform(cmd *cobra.Command, asJSON bool) error {
	if err := knownStore(p.store); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return failure(exitFailed, err)
	}
	c := cast{append([]string{program}, p.script...), cmd.ErrOrStderr(), progress(cmd.ErrOrStderr())}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	found, err := p.run(ctx, c)
	c.progress("")
	if err == nil {
		return present(cmd, found, asJSON)
	}
	if broken := (*exit)(nil); errors.As(err, &broken) {
		return broken
	}
	return p.failed(err)
}

// partCommand is the hidden command of a process in a play, which is told by stdin
// what to do.
func partCommand(use, short string, act func(context.Context, io.Reader, io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:    use,
		Short:  short,
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := act(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return failure(exitFailed, err)
			}
			return nil
		},
	}
}

// untilSignal returns a context that ends with a signal. Its cause is then the
// exit that the signal asks for. The next one ends this program at once.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	listen(signals, ending)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(failure(exitSignal+signalNumber(s), nil))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
