// Command torture tests every store with every possible fault, by "holdfast verify": first
// each fault alone, then every fault together that the store promises to stand, then every
// fault together. The command prints a line for each run. The command fails if a run has
// found a violation, or has proved nothing.
//
//	go run ./cmd/holdfast-verify/internal/torture -store redis,etcd:3 -for 30s
//
// A whole pass takes a little more than an hour. docs/torture.md explains the tables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// usual is how long a whole pass takes.
const usual = 70 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := execute(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string, out io.Writer) error {
	p := &pass{out: out}
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	within := flags.Duration("within", usual, "let the whole pass take about this long")
	flags.DurationVar(&p.length, "for", 0, "how long each fault is done alone; those together take longer (default what fits)")
	flags.StringVar(&p.stores, "store", "", "torment only these stores, `names` with commas between them:\n"+strings.Join(verify.Engines(), ", "))
	flags.StringVar(&p.faults, "nemesis", "", "do only these faults, `names` with commas between them, as verify has them;\npromised and all are those together")
	flags.Uint64Var(&p.seed, "seed", sim.NewSeed(), "do the operations and faults of the pass that has told this `number`")
	flags.IntVar(&p.parallel, "parallel", 2, "do so many `runs` at once")
	flags.StringVar(&p.folder, "out", "", "keep the report of each run in this `folder`; those of the same build that have proved something are not done again")
	save := flags.String("save", "", "write the tables into this `folder`, too; those of a part replace none")
	if flags.Parse(args) != nil {
		return flag.ErrHelp // the flag set has reported the error
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: -store and -nemesis choose what to do", flags.Arg(0))
	case p.parallel < 1:
		return fmt.Errorf("-parallel %d: at least one run is done at once", p.parallel)
	}
	all, err := choose(names(p.stores), names(p.faults))
	if err != nil {
		return err
	}
	if p.length == 0 {
		p.length = fitting(all, *within, p.parallel)
	}
	if p.length < shortest {
		return fmt.Errorf("each of the %d runs would have %v: want %v, so give it more time (-for or -within), or choose fewer (-store, -nemesis)", len(all), p.length, shortest)
	}
	if *save != "" { // report errors now, and not after all the work
		if err := savable(*save, p.stores != "" || p.faults != ""); err != nil {
			return fmt.Errorf("-save: %w", err)
		}
	}
	results, err := p.do(ctx, all)
	if ctx.Err() != nil || *save == "" {
		return err
	}
	return errors.Join(err, os.WriteFile(filepath.Join(*save, tablesFile), tables(p.command(), results), 0o644))
}

const tablesFile = "torture-tables.md"

// savable returns an error if the folder does not exist. It also returns an error if the
// tables of a part would replace tables in the folder, where people may read the whole.
func savable(folder string, part bool) error {
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	file := filepath.Join(folder, tablesFile)
	if _, err := os.Stat(file); part && err == nil {
		return fmt.Errorf("%s is there, and -store and -nemesis make only a part: save it into another folder", file)
	}
	return nil
}

// names divides a list; an empty list has no names.
func names(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
