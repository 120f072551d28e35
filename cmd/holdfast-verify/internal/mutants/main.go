// Command mutants shows that the simulator and "holdfast verify" find bugs. The command
// breaks Holdfast in one place after the other, as a programmer might by mistake, and lets
// the simulator look, which takes seconds. If the simulator cannot find a mutant, verify
// looks for the mutant, for four minutes at most. The command prints a table of the mutants
// and their finders. The command fails if a mutant is not found, or if the same run of
// verify finds a violation in the unchanged Holdfast.
//
//	go run ./cmd/holdfast-verify/internal/mutants [-run PATTERN] [-parallel N] [-verify] [-save FOLDER]
//	go run ./cmd/holdfast-verify/internal/mutants -run PATTERN -overlay FOLDER
//
// A mutant is a text of some file, and its replacement. An overlay of the go command builds
// the mutant, so no part of the mutant is shipped. With -overlay the command only writes the
// overlay of one mutant, for "make replay".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/publish"
)

func main() { publish.Main("mutants", execute) }

func execute(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	pattern := flags.String("run", "", "try only the mutants whose names match this `regexp`")
	parallel := flags.Int("parallel", 2, "try so many `mutants` at once")
	verify := flags.Bool("verify", false, "let verify look also for what the simulator finds; -save does")
	save := flags.String("save", "", "write the lines of these mutants into the table in this `folder`, too")
	overlay := flags.String("overlay", "", "only write the files that make the mutant into a subfolder of this `folder`, and print the path of their list, for -overlay of go build and replay")
	if flags.Parse(args) != nil {
		return flag.ErrHelp // the flag set has reported the error
	}
	pick, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		return fmt.Errorf("-run: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: -run chooses what to try", flags.Arg(0))
	case *overlay != "" && *save != "":
		return errors.New("-overlay tries no mutant, so there is nothing to -save")
	case *parallel < 1:
		return fmt.Errorf("-parallel %d: want a number of mutants", *parallel)
	}
	all := slices.DeleteFunc(mutants(), func(m mutant) bool { return !pick.MatchString(m.name) })
	if len(all) == 0 {
		return fmt.Errorf("-run %s: no mutant has such a name", *pattern)
	}
	if *overlay != "" {
		return writeOverlay(ctx, all, *overlay, out)
	}
	if *save == "" {
		_, err := run(ctx, all, *parallel, *verify, out)
		return err
	}
	if err := publish.Savable(*save, false); err != nil {
		return err
	}
	file := filepath.Join(*save, tableFile)
	table, err := readRows(file)
	if err != nil {
		return err
	}
	tried, err := run(ctx, all, *parallel, true, out)
	if len(tried) == 0 {
		return err
	}
	maps.Copy(table, tried)
	return errors.Join(err, table.write(file))
}

// run tries mutants, some at once. After an error, the folder with programs and histories
// stays.
func run(ctx context.Context, all []mutant, parallel int, verify bool, out io.Writer) (rows, error) {
	root, err := repository(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return nil, err
	}
	l := &lab{root: root, folder: folder, parallel: parallel, limit: 4 * time.Minute, verify: verify}
	tried, err := l.tryAll(ctx, all, out)
	if err != nil {
		return tried, fmt.Errorf("%w (see %s)", err, folder)
	}
	return tried, os.RemoveAll(folder)
}

// writeOverlay writes the overlay of a single mutant into a folder, and prints the path of its
// list. The path is absolute, so that the list serves a go command in any folder.
func writeOverlay(ctx context.Context, all []mutant, folder string, out io.Writer) error {
	if len(all) > 1 {
		var names []string
		for _, m := range all {
			names = append(names, m.name)
		}
		return fmt.Errorf("-overlay is for one mutant, and -run chooses %d: %s", len(all), strings.Join(names, ", "))
	}
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	list, err := all[0].overlay(root, folder)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, list)
	return err
}
