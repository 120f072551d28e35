package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// completeKey offers the keys that are locked.
func (s *site) completeKey(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// The shell blocks until the completion returns.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.quiet = true
	var keys []string
	s.ask(ctx, func(ctx context.Context, locks *holdfast.Locker) error {
		for key, err := range locks.Keys(ctx, word) {
			if err != nil {
				return err
			}
			if cli.Clean(key) == key { // no shell could take an unprintable key
				keys = append(keys, key)
			}
		}
		return nil
	})
	slices.Sort(keys) // every store has its own order, such as the order of a folder
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// completeRun offers keys, then the completions of the shell for a command.
func (s *site) completeRun(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	keys, directive := s.completeKey(cmd, args, word)
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, ownKeys) }), directive
}
