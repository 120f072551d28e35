//go:build !unix

package servers

import (
	"errors"
	"os"
	"os/exec"
)

func bindToParent(*exec.Cmd) {}

func suspend(*os.Process) error { return errors.ErrUnsupported }
func resume(*os.Process) error  { return errors.ErrUnsupported }
