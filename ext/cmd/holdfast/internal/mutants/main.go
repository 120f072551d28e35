// Command mutants shows that "holdfast verify" finds what it is there to find.
// It breaks Holdfast in one place after the other, as somebody might by mistake,
// and lets verify look, for two minutes at most. It prints a table of what has
// found which mutant, and fails if one is not found, or if the same run finds
// something wrong with Holdfast as it is.
//
//	go run ./ext/cmd/holdfast/internal/mutants [-run PATTERN] [-parallel N] [-save FILE]
//
// A mutant is a text of some file, and what stands there instead. It is built by
// an overlay of the go command, so that nothing of it is in what is shipped.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := execute(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	pattern := flags.String("run", "", "try only the mutants whose names match this `regexp`")
	parallel := flags.Int("parallel", 2, "try so many `mutants` at once")
	save := flags.String("save", "", "write the table, and its build, in the place of those in this `file`, if all is well; not of a part")
	if flags.Parse(args) != nil {
		return flag.ErrHelp // it has said what is wrong
	}
	pick, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		return fmt.Errorf("-run: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: -run chooses what to try", flags.Arg(0))
	case *parallel < 1:
		return fmt.Errorf("-parallel %d: want a number of mutants", *parallel)
	case *save != "" && *pattern != "":
		return errors.New("-save writes a table of all mutants: leave out -run")
	}
	all := slices.DeleteFunc(mutants(), func(m mutant) bool { return !pick.MatchString(m.name) })
	if *save == "" {
		return run(ctx, all, *parallel, out)
	}
	if _, err := retabled(*save, nil); err != nil { // said now, and not after all the work
		return err
	}
	var table bytes.Buffer
	if err := run(ctx, all, *parallel, io.MultiWriter(out, &table)); err != nil {
		return err
	}
	text, err := retabled(*save, table.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(*save, text, 0o644)
}

// retabled returns the text of a file with another table.
func retabled(path string, table []byte) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		text, err = withTable(text, table)
	}
	if err != nil {
		return nil, fmt.Errorf("-save: %w", err)
	}
	return text, nil
}

// run tries mutants, some at once. What it has built, and the histories, stay if
// something was not as it should be.
func run(ctx context.Context, all []mutant, parallel int, out io.Writer) error {
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return err
	}
	l := &lab{root: root, folder: folder, parallel: parallel, limit: 2 * time.Minute}
	if err := l.tryAll(ctx, all, out); err != nil {
		return fmt.Errorf("%w (see %s)", err, folder)
	}
	return os.RemoveAll(folder)
}
