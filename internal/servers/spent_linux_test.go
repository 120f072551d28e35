package servers

import (
	"errors"
	"os/exec"
	"testing"
)

// TestSpent keeps a shell busy until its processor time shows.
func TestSpent(t *testing.T) {
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do :; done")
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer shell.Wait()
	defer shell.Process.Kill()
	pid := shell.Process.Pid
	err := await(func() error {
		if spent(pid) == 0 {
			return errors.New("the shell has used no processor time")
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Spent([]int{pid})
	if err != nil {
		t.Fatal(err)
	}
	own := spent(pid)
	if all, err := Spent(nil); err != nil || all-without < own || own < tick {
		t.Errorf("all processes: %v, without the shell: %v; the shell alone: %v; %v", all, without, own, err)
	}
}
