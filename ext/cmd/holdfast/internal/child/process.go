// Package child starts processes of this program that end with it.
package child

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"time"
)

// A Process is one that talks to its parent over its standard input and output.
type Process struct {
	*exec.Cmd
	In  io.WriteCloser
	Out *bufio.Reader
}

// Start starts a process. It is killed when ctx ends.
func Start(ctx context.Context, command []string, stderr io.Writer) (*Process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second
	bind(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Process{cmd, in, bufio.NewReader(out)}, cmd.Start()
}
