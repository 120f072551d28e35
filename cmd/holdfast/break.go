package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// A breaking is a call of break.
type breaking struct {
	id    string
	fence uint64
	yes   bool
	json  bool

	store *site
	cmd   *cobra.Command
	key   string
}

func breakCommand(store *site) *cobra.Command {
	b := &breaking{}
	cmd := &cobra.Command{
		Use:   "break KEY [--id ID | --fence N]",
		Short: "End the lock of a holder",
		Long: `Break ends a lock, and grants the lock to the first waiter at once. A holder under
"holdfast run" is stopped. A holder in a program is notified as soon as the store
allows, and may work until then: only a fencing token protects the data meanwhile.

If several holders share the lock, name the id or the token of one holder, as show
lists them. The id of a waiter is accepted as well.`,
		Example: `  holdfast break nightly
  holdfast break nightly --fence 1795224117627042 --yes`,
		Args:              oneKey,
		ValidArgsFunction: store.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			b.cmd, b.key, b.store = cmd, args[0], store
			return b.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&b.id, "id", "", "the `ID` of the holder")
	f.Uint64Var(&b.fence, "fence", 0, "the token `N` of the holder")
	f.BoolVarP(&b.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&b.json, "json", false, "write the broken holder as JSON, with the names of show")
	return cmd
}

func (b *breaking) run(ctx context.Context) error {
	if b.id != "" && b.cmd.Flags().Changed("fence") {
		return cli.Usage(b.cmd.CommandPath(), "--id and --fence exclude each other")
	}
	s, err := b.store.state(ctx, b.key)
	if err != nil {
		return err
	}
	target, err := b.target(s)
	if err != nil {
		return err
	}
	if err := b.confirm(target); err != nil {
		return err
	}
	err = b.store.ask(ctx, func(ctx context.Context, locks *holdfast.Locker) error {
		return locks.Break(ctx, b.key, target.ID)
	})
	switch {
	case errors.Is(err, holdfast.ErrLost):
		return cli.Failure(cli.ExitFailed, fmt.Errorf("%q has just ended by itself for %v", b.key, target))
	case err != nil:
		return err
	case b.json:
		return cli.WriteJSON(b.cmd.OutOrStdout(), keyState{Key: b.key, Holders: []claim{target}, Waiters: []claim{}})
	}
	cli.Say(b.cmd.ErrOrStderr(), "took %q away from %v", b.key, target)
	return nil
}

// target finds the claim to break.
func (b *breaking) target(s keyState) (claim, error) {
	var found []claim
	for _, c := range s.Holders {
		if (b.id == "" || c.ID == b.id) && (!b.cmd.Flags().Changed("fence") || c.Fence == strconv.FormatUint(b.fence, 10)) {
			found = append(found, c)
		}
	}
	for _, c := range s.Waiters {
		if c.ID == b.id {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && len(s.Holders) == 0:
		return claim{}, cli.Failure(cli.ExitFailed, fmt.Errorf("nobody holds %q", b.key))
	case len(found) == 0:
		return claim{}, cli.Failure(cli.ExitFailed, fmt.Errorf("no such holder of %q; there are: %s", b.key, list(s.Holders)))
	}
	return claim{}, cli.Failure(cli.ExitUsage, fmt.Errorf("%q has %d holders: name one by --id: %s", b.key, len(found), list(found)))
}

func list(claims []claim) string {
	var names []string
	for _, c := range claims {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}

// confirm asks a person, if the command runs on a terminal.
func (b *breaking) confirm(target claim) error {
	switch {
	case b.yes:
		return nil
	case !cli.Terminal(b.cmd.InOrStdin()) || !cli.Terminal(b.cmd.ErrOrStderr()):
		return cli.Usage(b.cmd.CommandPath(), "nobody is here to confirm it: add --yes")
	}
	fmt.Fprintf(b.cmd.ErrOrStderr(), "Take %s away from %v? [y/N] ", cli.Clean(strconv.Quote(b.key)), target)
	answer, _ := bufio.NewReader(b.cmd.InOrStdin()).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return cli.Failure(cli.ExitFailed, errors.New("nothing was broken"))
}
