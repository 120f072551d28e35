package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/demo"
)

func demoCommand() *cobra.Command {
	c := demo.Default()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a flash sale oversell without locks, and not with them",
		Long: `Demo starts server processes that sell one stock, kept in an SQLite database, to
many buyers at once: first without a lock, then with a sync.Mutex in each
process, then with Holdfast. It counts the orders in the database.

With --pause it goes on to freeze a server that holds the lock and is about to
write, until another has got the lock and sold the item. Its late write lands,
and in a second take is refused, because there the database checks the fencing
token.

It needs nothing installed, and leaves nothing behind; with --store, a database
has to be prepared by init, and no lock is left in the store. It succeeds if Holdfast
sold what there was, and fails with 1 if not.`,
		Example: `  holdfast demo
  holdfast demo --pause
  holdfast demo --servers 8 --store file:///run/lock/demo --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := refuseEmpty(cmd, map[string]string{"store": ownFiles}); err != nil {
				return err
			}
			return runDemo(cmd, c, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&c.Servers, "servers", c.Servers, "server processes")
	flags.IntVar(&c.Stock, "stock", c.Stock, "items on sale")
	flags.IntVar(&c.Buyers, "buyers", c.Buyers, "buyers, who want one item each")
	flags.StringVar(&c.Store, "store", "", "`URL` of the store that keeps the locks (default files that are\nremoved at the end)")
	flags.BoolVar(&c.Pause, "pause", false, "go on to freeze a server in the middle of a sale")
	flags.DurationVar(&c.TTL, "ttl", c.TTL, "how long a server that is frozen keeps its lock")
	flags.BoolVar(&asJSON, "json", false, "write JSON")
	cmd.AddCommand(partCommand("serve", "Be one server of a demo, which says on stdin what to sell", demo.Serve))
	return cmd
}

func runDemo(cmd *cobra.Command, c demo.Config, asJSON bool) error {
	if err := c.Validate(); err != nil {
		return usage(cmd.CommandPath(), "%w", err)
	}
	p := play{store: c.Store, script: []string{"demo", "serve"}, failed: demoFailure}
	p.run = func(ctx context.Context, with cast) (finding, error) {
		c.Command, c.Stderr, c.Progress = with.command, with.stderr, with.progress
		return demo.Run(ctx, c)
	}
	return p.perform(cmd, asJSON)
}

// demoFailure is the exit of a demo that could not be played.
func demoFailure(err error) error {
	switch {
	case errors.Is(err, driver.ErrURL):
		return failure(exitUsage, err)
	case errors.Is(err, demo.ErrStore):
		return storeFailure(err)
	}
	return failure(exitFailed, err)
}
