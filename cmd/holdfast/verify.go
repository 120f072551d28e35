package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/build"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// verifier is the program that "holdfast verify" runs. The code that starts and kills
// servers is only in that program.
const verifier = "holdfast-verify"

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [flags]",
		Short: "Test a store with worker processes that are killed, stopped and cut off",
		Long: `Verify runs the program holdfast-verify, from the folder of holdfast or from PATH.
"holdfast verify --help" shows the help of that program.

If the program is missing, install it:
  ` + install(build.Version()),
		DisableFlagParsing: true, // the program has its own flags
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := findVerifier()
			if err != nil {
				return err
			}
			return become(path, append([]string{verifier}, args...))
		},
	}
}

// findVerifier looks beside this program, then in PATH.
func findVerifier() (string, error) {
	if own, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), verifier)); err == nil {
			return path, nil
		}
	}
	path, err := lookPath(verifier)
	if e := (*cli.Exit)(nil); errors.As(err, &e) && e.Code == cli.ExitNotFound {
		e.Err = fmt.Errorf("verify needs the program %s: %s", verifier, install(build.Version()))
	}
	return path, err
}

// install returns the command that installs the verifier of this version.
func install(version string) string {
	release, _, _ := strings.Cut(version, " ")
	if release == "devel" || strings.Contains(release, "+") { // no such release can be downloaded
		release = "latest"
	}
	return "go install github.com/holdfast-go/holdfast/cmd/" + verifier + "@" + release
}
