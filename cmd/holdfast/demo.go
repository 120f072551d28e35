package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/demo"
)

func demoCommand() *cobra.Command {
	c := demo.Default()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a flash sale oversell without locks, but not with locks",
		Long: `Demo starts server processes that sell one stock to many buyers at once: first
without a lock, then with a sync.Mutex in each process, then with Holdfast. The
table shows the orders in the shop.

With --pause, demo also freezes a server that holds the lock and is about to write,
until a second server has acquired the lock and sold the item. The late write of the
frozen server lands. In a second take the shop checks the fencing token, and refuses
the late write.

Demo needs nothing installed, and leaves nothing behind. With --store, run init first
if the store is a database. Demo exits with 0 if Holdfast sold exactly the stock, and
with 1 otherwise.`,
		Example: `  holdfast demo
  holdfast demo --pause
  holdfast demo --servers 8 --store file:///run/lock/demo --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RefuseEmpty(cmd.CommandPath(), map[string]string{"store": cli.OwnFiles}, empty(cmd)); err != nil {
				return err
			}
			return runDemo(cmd, c, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&c.Servers, "servers", c.Servers, "server processes")
	flags.IntVar(&c.Stock, "stock", c.Stock, "items on sale")
	flags.IntVar(&c.Buyers, "buyers", c.Buyers, "buyers, who want one item each")
	flags.StringVar(&c.Store, "store", "", "`URL` of the store for the locks (default temporary files)")
	flags.BoolVar(&c.Pause, "pause", false, "go on to freeze a server in the middle of a sale")
	flags.DurationVar(&c.TTL, "ttl", c.TTL, "how long a frozen server keeps its lock")
	flags.BoolVar(&asJSON, "json", false, "write JSON")
	cmd.AddCommand(partCommand("serve", "Be one server of a demo, which says on stdin what to sell", demo.Serve))
	return cmd
}

func runDemo(cmd *cobra.Command, c demo.Config, asJSON bool) error {
	if err := c.Validate(); err != nil {
		return cli.Usage(cmd.CommandPath(), "%w", err)
	}
	p := cli.Play{Store: c.Store, Script: []string{"demo", "serve"}, Failed: demoFailure}
	p.Run = func(ctx context.Context, with cli.Cast) (cli.Finding, error) {
		c.Command, c.Stderr, c.Progress = with.Command, with.Stderr, with.Progress
		return demo.Run(ctx, c)
	}
	return p.Perform(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
}

// demoFailure returns the exit of a demo that could not be played.
func demoFailure(err error) error {
	switch {
	case errors.Is(err, driver.ErrURL):
		return cli.Failure(cli.ExitUsage, err)
	case errors.Is(err, demo.ErrStore):
		return cli.StoreFailure(err)
	}
	return cli.Failure(cli.ExitFailed, err)
}

// partCommand returns the hidden command for a process of a play.
func partCommand(use, short string, part cli.Part) *cobra.Command {
	return &cobra.Command{
		Use:    use,
		Short:  short,
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return part.Perform(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// empty returns a function that reports whether the value of a flag was set to "".
func empty(cmd *cobra.Command) func(flag string) bool {
	return func(flag string) bool {
		f := cmd.Flags().Lookup(flag)
		return f.Changed && f.Value.String() == ""
	}
}
