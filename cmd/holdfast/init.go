package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// An initing is a call of init.
type initing struct {
	print bool

	store *site
	cmd   *cobra.Command
}

func initCommand(store *site) *cobra.Command {
	i := &initing{store: store}
	cmd := &cobra.Command{
		Use:   "init [--print]",
		Short: "Prepare a store, once, by making its table in a database",
		Long: `Init prepares a store for its first lock. In a database, init creates the table of
locks and a view of the table for people. The other stores need no preparation, and
init says so. No other command creates a table on a server.

Init keeps existing tables and locks. So init may run at every deployment, on many
machines at once. Init needs a user with the right to create tables. The users who
lock need the rights to read and write the table, and no more.

With --print, init writes the statements to stdout for your DBA.`,
		Example: `  holdfast init --store postgres://admin@db/app
  holdfast init --store mysql://app@db/app --print`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			i.cmd = cmd
			return i.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&i.print, "print", false, "write the statements instead of running them")
	return cmd
}

func (i *initing) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	store, name, err := i.store.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closing := store.Close(); err == nil {
			err = cli.StoreFailure(closing)
		}
	}()
	creator, ok := store.(driver.Creator)
	switch {
	case !ok:
		i.say("%s needs no preparation", name)
		return nil
	case i.print:
		return i.write(creator.Schema())
	}
	return i.create(ctx, creator, name)
}

// create prepares a store, and reports whether the store was prepared before, if that is known.
func (i *initing) create(ctx context.Context, creator driver.Creator, name string) error {
	_, missing := creator.Check(ctx)
	if err := creator.Create(ctx); err != nil {
		if errors.Is(err, driver.ErrInvalid) {
			err = fmt.Errorf("%w; \"holdfast init --print\" shows the statements for a user who may run them", err)
		}
		return cli.StoreFailure(fmt.Errorf("prepare %s: %w", name, err))
	}
	if err := i.store.check(ctx, creator, name); err != nil {
		return err
	}
	switch {
	case missing == nil:
		i.say("%s was prepared before", name)
	case errors.Is(missing, driver.ErrInvalid):
		i.say("%s is prepared now", name)
	default: // the check could not look
		i.say("%s is prepared", name)
	}
	return nil
}

// write writes statements in the form that database clients read.
func (i *initing) write(statements []string) error {
	var b strings.Builder
	for _, text := range statements {
		b.WriteString(text + ";\n\n")
	}
	_, err := fmt.Fprint(i.cmd.OutOrStdout(), strings.TrimSuffix(b.String(), "\n"))
	return err
}

func (i *initing) say(format string, args ...any) { cli.Say(i.cmd.ErrOrStderr(), format, args...) }
