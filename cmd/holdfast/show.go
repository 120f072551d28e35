package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

func showCommand(store *site) *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show who holds a lock and who waits for it",
		Long: `Show lists the holders of the lock on KEY, then the waiters in FIFO order as far as
the store knows. The list of a free lock is empty.

In a pipe, show writes no header without --header, and separates the columns by one
tab: holds or waits, kind of lock, owner, since when, seconds until the lease ends
without a renewal, token, id, note.`,
		Example: `  holdfast show nightly
  holdfast show nightly --json | jq -r '.holders[].owner'`,
		Args:              oneKey,
		ValidArgsFunction: store.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := as.check(cmd); err != nil {
				return err
			}
			s, err := store.state(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if as.json {
				return cli.WriteJSON(cmd.OutOrStdout(), s)
			}
			return as.tableOfOne(cmd, s)
		},
	}
	as.register(cmd, "write JSON")
	return cmd
}

func (f *format) tableOfOne(cmd *cobra.Command, s keyState) error {
	out := cmd.OutOrStdout()
	t := f.newTable(out, "STATE", "KIND", "OWNER", "FOR", "LEFT", "TOKEN", "ID", "NOTE")
	for _, c := range s.Holders {
		t.add("holds", c.kind(), c.Owner, t.since(c), t.left(c), c.Fence, c.ID, c.Note)
	}
	for _, c := range s.Waiters {
		t.add("waits", c.kind(), c.Owner, t.since(c), t.left(c), c.Fence, c.ID, c.Note)
	}
	if t.people && len(t.rows) == 1 {
		cli.Say(cmd.ErrOrStderr(), "%q is free", s.Key)
	}
	return t.write(out)
}

// state returns the state of a key.
func (s *site) state(ctx context.Context, key string) (one keyState, err error) {
	err = s.ask(ctx, func(ctx context.Context, locks *holdfast.Locker) error {
		one, err = state(ctx, locks, key)
		return err
	})
	return one, err
}
