package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/build"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, and the stores that --store can name",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

// version tells which build this is, in one line.
func version() string {
	return fmt.Sprintf("holdfast %s (%s %s/%s; stores: %s)", build.Version(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, kinds())
}
