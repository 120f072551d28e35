// Command torture tests every store with every possible fault, by "holdfast verify": first
// each fault alone, then every fault together that the store promises to stand, then every
// fault together. The command prints a line for each run. The command fails if a run has
// found a violation, or if no run has proved anything.
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
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/internal/publish"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// usual is how long a whole pass takes.
const usual = 90 * time.Minute

func main() { publish.Main("torture", execute) }

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
	save := flags.String("save", "", "write the tables into this `folder`, too; those of a part are "+partFile+", and replace none")
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
		if err := publish.Savable(*save, p.part(), p.file()); err != nil {
			return err
		}
	}
	results, err := p.do(ctx, all)
	if ctx.Err() != nil || *save == "" {
		return err
	}
	return errors.Join(err, os.WriteFile(filepath.Join(*save, p.file()), tables(p.command(), p.part(), results), 0o644))
}

const (
	tablesFile = "torture-tables.md"
	partFile   = "torture-part.md" // the tables of chosen stores or faults
)

// names divides a list; an empty list has no names.
func names(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
