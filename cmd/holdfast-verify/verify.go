package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/worker"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// name is how users start this command.
const name = "holdfast verify"

const help = `Verify starts worker processes that lock, work and unlock on shared keys, injects
faults, and checks the records of the workers: no two workers held a key at once,
tokens grow, every holder knew of its loss before the next grant, no waiter waited
for a free key, and no claim is left behind. A run goes on until enough has happened
to prove something, at most five times as long as planned.

In a named store, verify uses keys of its own, and harms only its own processes and
connections. Verify ignores HOLDFAST_STORE. The exit code is 1 if a promise was broken
or no lock was granted, and 77 if nothing was broken and nothing proved.

docs/cli.md describes every fault and every check.

Usage:
  holdfast verify [flags]

Examples:
  holdfast verify
  holdfast verify --store redis://localhost --for 1m
  holdfast verify --start etcd:3
  holdfast verify --nemesis kill,pause --seed 7 --json

Flags:
`

// A call holds the flags of the command line, and the run that the flags ask for.
type call struct {
	verify.Config
	set            *pflag.FlagSet
	kinds, nemeses string
	json, help     bool
}

func newCall() *call {
	f := &call{Config: verify.Default(), set: pflag.NewFlagSet(name, pflag.ContinueOnError)}
	f.set.Usage = func() {}
	f.set.StringVar(&f.Store, "store", "", "`URL` of the store (default temporary files)")
	f.set.StringVar(&f.Start, "start", "", "start a store of this `kind` for the run, from the installed programs:\n"+strings.Join(verify.Engines(), ", "))
	f.set.Uint64Var(&f.Seed, "seed", 0, "repeat the operations and faults of the run that printed this `number`")
	f.set.StringVar(&f.kinds, "kind", "", "use only these kinds of locks, `names` with commas between them\n(default every kind of the store):\n"+plan.List(plan.Kinds()))
	f.set.StringVar(&f.nemeses, "nemesis", "", "inject only these faults, `names` with commas between them, or none\n(default every fault that the store promises to survive):\n"+plan.List(plan.Nemeses()))
	f.set.DurationVar(&f.Length, "for", 0, "length of the run (default until every fault has come, at least 20s)")
	f.set.DurationVar(&f.TTL, "ttl", f.TTL, "how long a silent worker keeps a lock")
	f.set.IntVar(&f.Workers, "workers", f.Workers, "worker processes")
	f.set.IntVar(&f.Clients, "clients", f.Clients, "goroutines in each process")
	f.set.IntVar(&f.Keys, "keys", f.Keys, "shared keys")
	f.set.StringVar(&f.Beside, "beside", "", "run every second worker with this `program`, built from a different release")
	f.set.StringVar(&f.Out, "out", "", "keep the history in this new `folder` (default only if a promise was broken)")
	f.set.StringVar(&f.HTML, "html", "", "write a page about the run to this `file`")
	f.set.BoolVar(&f.json, "json", false, "write JSON")
	f.set.BoolVarP(&f.help, "help", "h", false, "show this help")
	return f
}

// parse reads the arguments and reports errors in them.
func (f *call) parse(args []string) (err error) {
	if err := f.set.Parse(args); err != nil {
		if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
			flag := wrong.GetFlag()
			err = cli.WrongFlag(flag.Name, wrong.GetValue(), flag.Value.Type())
		}
		return err
	}
	if f.help {
		return nil
	}
	if f.set.NArg() > 0 {
		return fmt.Errorf("got %q, but there is nothing to name", f.set.Arg(0))
	}
	if f.kinds != "" {
		if f.Kinds, err = plan.ParseKinds(f.kinds); err != nil {
			return err
		}
	}
	if f.nemeses != "" {
		if f.Nemeses, err = plan.ParseNemeses(f.nemeses); err != nil {
			return err
		}
	}
	if !f.set.Changed("seed") {
		f.Seed = uint64(rand.Uint32())
	}
	return nil
}

// empty reports whether a flag was set to the empty text.
func (f *call) empty(flag string) bool {
	given := f.set.Lookup(flag)
	return given.Changed && given.Value.String() == ""
}

// run executes the command that the arguments ask for.
func run(ctx context.Context, args []string) error {
	if slices.Equal(args, []string{worker.Argument}) {
		return cli.Part(verify.Work).Perform(ctx, os.Stdin, os.Stdout)
	}
	f := newCall()
	wrong := f.parse(args)
	if f.help {
		_, err := io.WriteString(os.Stdout, help+f.set.FlagUsages())
		return err
	}
	if err := cli.RefuseEmpty(name, names(), f.empty); err != nil {
		return err
	}
	if wrong == nil {
		wrong = f.Validate()
	}
	if wrong != nil {
		return cli.Usage(name, "%w", wrong)
	}
	p := cli.Play{Store: f.Store, Script: []string{worker.Argument}, Failed: exitOf}
	p.Run = func(ctx context.Context, with cli.Cast) (cli.Finding, error) {
		f.Command, f.Stderr, f.Progress = with.Command, with.Stderr, with.Progress
		return verify.Run(ctx, f.Config)
	}
	return p.Perform(ctx, os.Stdout, os.Stderr, f.json)
}

// names describes the value of each flag that takes text.
func names() map[string]string {
	return map[string]string{
		"store":   cli.OwnFiles,
		"start":   "name one of " + strings.Join(verify.Engines(), ", ") + ", or leave it out for files",
		"kind":    "name some of " + plan.List(plan.Kinds()) + ", or leave it out for all that the store has",
		"nemesis": "name some of " + plan.List(plan.Nemeses()) + ", or none, or leave it out for all that the store promises to stand",
		"beside":  "name the program holdfast-verify of another release, or leave it out",
		"out":     "name a new folder, or leave it out for one that stays only if a promise was broken",
		"html":    "name a file, or leave it out for no page",
	}
}

// exitOf returns the exit of a run that failed or found a violation.
func exitOf(err error) error {
	switch {
	case errors.Is(err, driver.ErrURL), errors.Is(err, verify.ErrNemesis), errors.Is(err, verify.ErrEngine), errors.Is(err, verify.ErrKind):
		return cli.Failure(cli.ExitUsage, err)
	case errors.Is(err, servers.ErrMissing):
		return cli.Failure(cli.ExitUnreachable, err)
	case errors.Is(err, verify.ErrUnproved):
		return cli.Failure(cli.ExitUnproved, err)
	case errors.Is(err, verify.ErrStore):
		return cli.StoreFailure(err)
	}
	return cli.Failure(cli.ExitFailed, err)
}
