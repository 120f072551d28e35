package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// completeKey offers the keys that are locked.
func (s *site) completeKey(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// Somebody waits with a finger on the key.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.quiet = true
	var keys []string
	s.ask(ctx, func(ctx context.Context, locks *holdfast.Locker) error {
		for key, err := range locks.Keys(ctx, word) {
			if err != nil {
				return err
			}
			if clean(key) == key { // no shell could take it
				keys = append(keys, key)
			}
		}
		return nil
	})
	slices.Sort(keys) // stores have an order of their own, such as that of a folder
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// completeRun offers keys, then whatever the shell has for a command.
func (s *site) completeRun(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return s.completeKey(cmd, args, word)
}
