package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// execute runs holdfast with arguments and returns its exit code.
func execute(args []string) int {
	cmd := root()
	cmd.SetArgs(args)
	err := cmd.Execute()
	code := cli.Report(cmd.ErrOrStderr(), err)
	if v, ok := cmd.ErrOrStderr().(*voice); ok { // of run
		v.flush()
	}
	cli.Obey(err)
	return code
}

func root() *cobra.Command {
	store := &site{}
	cmd := &cobra.Command{
		Use:   "holdfast",
		Short: "Run commands under locks that hold across processes and machines",
		Long: `Holdfast runs a command while holding a lock, so that only one holder of the lock
runs at a time: on this machine or, with a store on the network, on every machine.
Holdfast also shows the holders of locks, and breaks locks.

A key names the guarded resource: any UTF-8 text of 1 to 512 bytes. Locks are leases:
if holdfast or its machine dies, the lock becomes free without help.`,
		Example: `  holdfast run nightly -- ./backup.sh
  holdfast run --try deploy -- make deploy
  holdfast ls
  holdfast show nightly
  holdfast demo`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              cobra.ArbitraryArgs,

		SuggestionsMinimumDistance: 2,
	}
	store.register(cmd)
	// Cobra's own flag prints by a template, and a program that links text/template keeps
	// every exported method.
	asked := cmd.Flags().BoolP("version", "v", false, "version for holdfast")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return showVersion(cmd)
		}
		return unknown(cmd, args)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.Usage(cmd.CommandPath(), "%w", wrongFlag(err))
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

// unknown runs the bare command: unknown prints help, or refuses a word that is not a
// command.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(" (%s?)", strings.Join(near, ", "))
	}
	return cli.Usage("holdfast", "there is no command %q%s", args[0], hint)
}

// refuseUnknown makes the commands added by cobra refuse unknown arguments.
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
				return cli.Usage(cmd.CommandPath(), "there is no script for the shell %q", args[0])
			}
		}
	}
}

// wrongFlag says in plain words which value the flag needs.
func wrongFlag(err error) error {
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		flag := wrong.GetFlag()
		return cli.WrongFlag(flag.Name, wrong.GetValue(), flag.Value.Type())
	}
	return err
}

// noArguments checks the arguments of a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Usage(cmd.CommandPath(), "got %q, but there is nothing to name", args[0])
	}
	return nil
}

// oneKey checks the arguments of a command that takes a key.
func oneKey(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usage(cmd.CommandPath(), "got %d arguments instead of one KEY", len(args))
	}
	if err := rehearse(args[0]); err != nil {
		return cli.Usage(cmd.CommandPath(), "%w", err)
	}
	return nil
}
