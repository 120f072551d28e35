// Package child starts processes of this program. A child ends with this process.
package child

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"time"
)

// A Process talks to its parent over standard input and output.
type Process struct {
	*exec.Cmd
	In  io.WriteCloser
	Out *bufio.Reader
}

// Start starts a process. The process is killed when ctx ends.
func Start(ctx context.Context, command []string, stderr io.Writer) (*Process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Minute // for the end of stderr, which comes at once unless the machine is busy
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
