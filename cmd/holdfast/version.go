package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/build"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, and the stores that --store can name",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return showVersion(cmd) },
	}
}

func showVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
	return err
}

// version describes this build in one line.
func version() string {
	return fmt.Sprintf("holdfast %s (%s %s/%s; stores: %s)", build.Version(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, kinds())
}
