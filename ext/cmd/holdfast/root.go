package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// execute runs holdfast with arguments and returns its exit code.
func execute(args []string) int {
	cmd := root()
	cmd.SetArgs(args)
	return report(os.Stderr, cmd.Execute())
}

func root() *cobra.Command {
	store := &site{}
	cmd := &cobra.Command{
		Use:   "holdfast",
		Short: "Run commands under locks that hold across processes and machines",
		Long: `Holdfast runs a command while it holds a lock, so that no other holder of that
lock runs at the same time: on this machine or, with a store on the network,
on any. It shows who holds which locks, and can break them.

A key names what is guarded: any UTF-8 of 1 to 512 bytes. Locks are leases: if
holdfast or its machine dies, the lock is free again by itself.`,
		Example: `  holdfast run nightly -- ./backup.sh
  holdfast run --try deploy -- make deploy
  holdfast ls
  holdfast show nightly
  holdfast demo`,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              cobra.ArbitraryArgs,

		SuggestionsMinimumDistance: 2,
		RunE:                       unknown,
	}
	store.register(cmd)
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(cmd.CommandPath(), "%w", wrongFlag(err))
	})
	cmd.AddCommand(
		runCommand(store),
		lsCommand(store),
		showCommand(store),
		breakCommand(store),
		initCommand(store),
		demoCommand(),
		verifyCommand(),
		versionCommand(),
	)
	refuseUnknown(cmd)
	return cmd
}

// unknown is what the bare command does: help, or the word that is not a
// command.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(" (%s?)", strings.Join(near, ", "))
	}
	return usage("holdfast", "there is no command %q%s", args[0], hint)
}

// refuseUnknown makes the commands that cobra adds refuse what they do not know.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if found, _, err := root.Find(args); len(args) > 0 && (err != nil || found == root) {
					return unknown(root, args)
				}
				return nil
			}
		case "completion":
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return cmd.Help()
				}
				return usage(cmd.CommandPath(), "there is no script for the shell %q", args[0])
			}
		}
	}
}

// wrongFlag says in plain words what the value of a flag should have been.
func wrongFlag(err error) error {
	wrong := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	flag := wrong.GetFlag()
	want := "true or false"
	switch flag.Value.Type() {
	case "duration":
		want = "a duration, such as 90s or 2h30m"
	case "int":
		want = "a whole number"
	case "uint64":
		want = "a number of digits only"
	}
	return fmt.Errorf("--%s %q must be %s", flag.Name, wrong.GetValue(), want)
}

// refuseEmpty refuses flags that were given no text, as by a script with a variable
// that is not set: such a script does not mean the default. names says of each what it
// should have.
func refuseEmpty(cmd *cobra.Command, names map[string]string) error {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		if f := cmd.Flags().Lookup(flag); f.Changed && f.Value.String() == "" {
			return usage(cmd.CommandPath(), "--%s is empty: %s", flag, names[flag])
		}
	}
	return nil
}

// ownFiles is what --store should have of a command that brings files of its own.
const ownFiles = "name a store, or leave it out for files that are removed at the end"

// noArguments checks the arguments of a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd.CommandPath(), "got %q, but there is nothing to name", args[0])
	}
	return nil
}

// oneKey checks the arguments of a command that takes a key.
func oneKey(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(cmd.CommandPath(), "got %d arguments instead of one KEY", len(args))
	}
	if err := rehearse(args[0]); err != nil {
		return usage(cmd.CommandPath(), "%w", err)
	}
	return nil
}
