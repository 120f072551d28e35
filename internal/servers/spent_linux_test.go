package servers

import (
	"os/exec"
	"testing"
	"time"
)

// TestSpent keeps a shell busy until its processor time shows.
func TestSpent(t *testing.T) {
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do :; done")
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer shell.Wait()
	defer shell.Process.Kill()
	for {
		with, err := Spent(nil)
		if err != nil {
			t.Fatal(err)
		}
		own := spent(shell.Process.Pid)
		without, err := Spent([]int{shell.Process.Pid})
		if err != nil {
			t.Fatal(err)
		}
		if own > 0 && with >= tick {
			if again, _ := Spent(nil); again-without < own {
				t.Errorf("all processes: %v, without the shell: %v; the shell alone: %v", again, without, own)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}
