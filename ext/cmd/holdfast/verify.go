package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

func verifyCommand() *cobra.Command {
	c := verify.Default()
	var kinds, nemeses string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Put a store to the proof with processes that are killed, stopped and cut off",
		Long: `Verify starts worker processes that lock, work and unlock on shared keys, does
harm to them, and checks what they have written down: that no two held a key at
once, that tokens grow, that a holder knew of its loss before the next grant,
that no free key was waited for, and that nothing is left.

In a store that you name, it uses keys of its own, and harms only its own
processes and its own connections. It does not look at HOLDFAST_STORE. It fails with
1 if a promise was broken, or if there was too little to prove anything.

docs/cli.md tells what each fault does, and what each check looks at.`,
		Example: `  holdfast verify
  holdfast verify --store redis://localhost --for 1m
  holdfast verify --start etcd:3
  holdfast verify --nemesis kill,pause --seed 7 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := refuseEmpty(cmd, verifyNames()); err != nil {
				return err
			}
			if kinds != "" {
				if c.Kinds, err = plan.ParseKinds(kinds); err != nil {
					return usage(cmd.CommandPath(), "%w", err)
				}
			}
			if nemeses != "" {
				if c.Nemeses, err = plan.ParseNemeses(nemeses); err != nil {
					return usage(cmd.CommandPath(), "%w", err)
				}
			}
			if !cmd.Flags().Changed("seed") {
				c.Seed = uint64(rand.Uint32())
			}
			return runVerify(cmd, c, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.Store, "store", "", "`URL` of the store (default files that are removed at the end)")
	flags.StringVar(&c.Start, "start", "", "start a store of this `kind` for the run, from the programs that are installed:\n"+strings.Join(verify.Engines(), ", "))
	flags.Uint64Var(&c.Seed, "seed", 0, "do the operations and faults of the run that has told this `number`")
	flags.StringVar(&kinds, "kind", "", "take only locks of these kinds, `names` with commas between them\n(default all that the store has):\n"+plan.List(plan.Kinds()))
	flags.StringVar(&nemeses, "nemesis", "", "do only these faults, `names` with commas between them, or none\n(default all that the store promises to stand):\n"+plan.List(plan.Nemeses()))
	flags.DurationVar(&c.Length, "for", 0, "how long (default until each fault has come, 20s at least)")
	flags.DurationVar(&c.TTL, "ttl", c.TTL, "how long a silent worker keeps a lock")
	flags.IntVar(&c.Workers, "workers", c.Workers, "worker processes")
	flags.IntVar(&c.Clients, "clients", c.Clients, "goroutines in each")
	flags.IntVar(&c.Keys, "keys", c.Keys, "keys that they share")
	flags.StringVar(&c.Out, "out", "", "keep the history in this new `folder` (default only if a promise was broken)")
	flags.StringVar(&c.HTML, "html", "", "write a page that shows the run to this `file`")
	flags.BoolVar(&asJSON, "json", false, "write JSON")
	cmd.AddCommand(partCommand("work", "Be one worker of a run, which says on stdin what to do", verify.Work))
	return cmd
}

// verifyNames says what the flags that take text are to have.
func verifyNames() map[string]string {
	return map[string]string{
		"store":   ownFiles,
		"start":   "name one of " + strings.Join(verify.Engines(), ", ") + ", or leave it out for files",
		"kind":    "name some of " + plan.List(plan.Kinds()) + ", or leave it out for all that the store has",
		"nemesis": "name some of " + plan.List(plan.Nemeses()) + ", or none, or leave it out for all that the store promises to stand",
		"out":     "name a new folder, or leave it out for one that stays only if a promise was broken",
		"html":    "name a file, or leave it out for no page",
	}
}

func runVerify(cmd *cobra.Command, c verify.Config, asJSON bool) error {
	if err := c.Validate(); err != nil {
		return usage(cmd.CommandPath(), "%w", err)
	}
	p := play{store: c.Store, script: []string{"verify", "work"}, failed: verifyFailure}
	p.run = func(ctx context.Context, with cast) (finding, error) {
		c.Command, c.Stderr, c.Progress = with.command, with.stderr, with.progress
		return verify.Run(ctx, c)
	}
	return p.perform(cmd, asJSON)
}

// verifyFailure is the exit of a run that could not be done.
func verifyFailure(err error) error {
	switch {
	case errors.Is(err, driver.ErrURL), errors.Is(err, verify.ErrNemesis), errors.Is(err, verify.ErrEngine), errors.Is(err, verify.ErrKind):
		return failure(exitUsage, err)
	case errors.Is(err, servers.ErrMissing):
		return failure(exitUnreachable, err)
	case errors.Is(err, verify.ErrStore):
		return storeFailure(err)
	}
	return failure(exitFailed, err)
}
