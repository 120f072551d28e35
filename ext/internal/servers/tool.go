package servers

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// runTool runs a program that ends by itself. Its error shows what the program
// has said.
func runTool(cmd *exec.Cmd) error {
	_, err := query(cmd, "")
	return err
}

// query gives a program its input, and returns the output without the last end
// of line. A program that hangs is killed.
func query(cmd *exec.Cmd, input string) (string, error) {
	var output, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &output, &complaint
	if err := cmd.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSuffix(output.String(), "\n"), nil
}
