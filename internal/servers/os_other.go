//go:build !unix

package servers

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

func bindToParent(*exec.Cmd) {}

func memory() string { return "" }

func deafen(net.Listener) {}

// run does nothing: there is no account without root.
func (*account) run(*exec.Cmd) {}

func kill(p *os.Process) error { return p.Kill() }

func suspend(*os.Process) (settle func(), err error) { return nil, errors.ErrUnsupported }
func resume(*os.Process) error                       { return errors.ErrUnsupported }
