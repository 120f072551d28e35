package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
)

// A Finding is the result of a Play.
type Finding interface {
	Print(io.Writer) error // for people
	Err() error            // nil for success
}

// present writes a finding to stdout, and returns the error of the finding.
func present(stdout io.Writer, found Finding, asJSON bool) error {
	write := found.Print
	if asJSON {
		write = func(w io.Writer) error { return WriteJSON(w, found) }
	}
	return errors.Join(write(stdout), found.Err())
}

// A Play starts processes of this program, such as the servers of a demo.
type Play struct {
	Store  string
	Script []string // the arguments of each process
	Run    func(context.Context, Cast) (Finding, error)
	Failed func(error) error // returns the exit of a Run that fails, or of what Run has found
}

// A Cast holds the arguments of Run.
type Cast struct {
	Command  []string // starts a process
	Stderr   io.Writer
	Progress func(line string)
}

// Perform runs a play and writes the finding, as JSON or for people.
func (p Play) Perform(ctx context.Context, stdout, stderr io.Writer, asJSON bool) error {
	if u, err := driver.ParseURL(p.Store); err == nil && u.Scheme != "" && !slices.Contains(driver.Schemes(), u.Scheme) {
		_, err = driver.Open(ctx, p.Store) // The error lists the stores.
		return Failure(ExitUsage, err)
	}
	program, err := os.Executable()
	if err != nil {
		return Failure(ExitFailed, err)
	}
	c := Cast{append([]string{program}, p.Script...), stderr, Progress(stderr)}
	ctx, stop := untilSignal(ctx)
	defer stop()
	found, err := p.Run(ctx, c)
	c.Progress("")
	if err == nil {
		if err = present(stdout, found, asJSON); err == nil {
			return nil
		}
	}
	if broken := (*Exit)(nil); errors.As(err, &broken) {
		return broken
	}
	return p.Failed(err)
}

// A Part is the work of a process of a play, which reads the orders from stdin.
type Part func(ctx context.Context, stdin io.Reader, stdout io.Writer) error

// Perform plays a part.
func (p Part) Perform(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	if err := p(ctx, stdin, stdout); err != nil {
		return Failure(ExitFailed, err)
	}
	return nil
}

// untilSignal returns a context that ends with the first signal of Ending, with the exit
// as the cause. The second signal ends the program at once.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	Listen(signals, Ending)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(EndedBy(s))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
