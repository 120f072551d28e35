package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

func lsCommand(store *site) *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List who holds locks",
		Long: `Ls lists the holders of every key that begins with PREFIX, or of every key, and the
number of waiters for each key.

In a pipe, ls writes no header without --header, and separates the columns by one
tab: key, kind of lock, owner, since when, seconds until the lease ends without a
renewal, token, number of waiters, note.`,
		Example: `  holdfast ls
  holdfast ls backup/
  holdfast ls --json | jq -r '.[].key'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage(cmd.CommandPath(), "got %d arguments instead of one PREFIX", len(args))
			}
			return nil
		},
		ValidArgsFunction: store.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := as.check(cmd); err != nil {
				return err
			}
			states, err := store.list(cmd.Context(), append(args, "")[0])
			if err != nil {
				return err
			}
			if as.json {
				return cli.WriteJSON(cmd.OutOrStdout(), states)
			}
			return as.tableOf(cmd, states)
		},
	}
	as.register(cmd, "write JSON: an array of what show writes")
	return cmd
}

func (f *format) tableOf(cmd *cobra.Command, states []keyState) error {
	out := cmd.OutOrStdout()
	t := f.newTable(out, "KEY", "KIND", "OWNER", "FOR", "LEFT", "TOKEN", "WAITING", "NOTE")
	for _, s := range states {
		waiting := strconv.Itoa(len(s.Waiters))
		for _, c := range s.Holders {
			t.add(s.Key, c.kind(), c.Owner, t.since(c), t.left(c), c.Fence, waiting, c.Note)
		}
	}
	return t.write(out)
}

// list returns the state of all keys with a prefix, in order.
func (s *site) list(ctx context.Context, prefix string) ([]keyState, error) {
	states := []keyState{}
	err := s.ask(ctx, func(ctx context.Context, locks *holdfast.Locker) error {
		for key, err := range locks.Keys(ctx, prefix) {
			if err != nil {
				return err
			}
			one, err := state(ctx, locks, key)
			if err != nil {
				return err
			}
			if len(one.Holders)+len(one.Waiters) > 0 {
				states = append(states, one)
			}
		}
		return nil
	})
	sortKeys(states)
	return states, err
}

// ask opens the store for a few requests.
func (s *site) ask(ctx context.Context, questions func(context.Context, *holdfast.Locker) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	locks, err := s.open(ctx, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	return cli.StoreFailure(questions(ctx, locks))
}
