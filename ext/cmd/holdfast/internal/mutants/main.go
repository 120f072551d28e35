// Command mutants shows that "holdfast verify" finds what it is there to find.
// It breaks Holdfast in one place after the other, as somebody might by mistake,
// and lets verify look, for two minutes at most. It prints a table of what has
// found which mutant, and fails if one is not found, or if the same run finds
// something wrong with Holdfast as it is.
//
//	go run ./ext/cmd/holdfast/internal/mutants [-run PATTERN]
//
// A mutant is a text of some file, and what stands there instead. It is built by
// an overlay of the go command, so that nothing of it is in what is shipped.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
)

func main() {
	pattern := flag.String("run", "", "try only the mutants whose names match this `pattern`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *pattern); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the mutants whose names match a pattern. What it has built, and the
// histories, stay if something was not as it should be.
func run(ctx context.Context, pattern string) error {
	pick, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return err
	}
	l := &lab{root: root, folder: folder}
	all := slices.DeleteFunc(mutants(), func(m mutant) bool { return !pick.MatchString(m.name) })
	if err := l.tryAll(ctx, all, os.Stdout); err != nil {
		return fmt.Errorf("%w (see %s)", err, folder)
	}
	return os.RemoveAll(folder)
}
