package demo

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

func init() { roles["freeze"] = freezeForEver }

// freezeForEver is a parent with a server that it has frozen. It tells when it
// is that far, and waits to be killed.
func freezeForEver() error {
	c := Config{Command: []string{os.Args[0], "serve"}, Stderr: os.Stderr}
	servers, err := c.startFleet(context.Background(), 1, job{Guard: NoLock})
	if err != nil {
		return err
	}
	if err := servers[0].freeze(); err != nil {
		return err
	}
	os.Stdout.WriteString("frozen")
	select {}
}

// TestFrozenServerEndsWithItsParent: it cannot see the end of its input. Both
// processes have the same stderr, so its end is the end of both.
func TestFrozenServerEndsWithItsParent(t *testing.T) {
	parent := exec.Command(self(t)[0], "freeze")
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	parent.Stderr = theirs
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	said := make([]byte, len("frozen"))
	if _, err := io.ReadFull(stdout, said); err != nil {
		t.Fatal(err)
	}
	parent.Process.Kill()
	parent.Wait()
	stderr.SetReadDeadline(time.Now().Add(time.Minute))
	if complaint, err := io.ReadAll(stderr); err != nil || len(complaint) > 0 {
		t.Errorf("the frozen server has outlived its parent: %s%v", complaint, err)
	}
}
