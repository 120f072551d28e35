package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// repeats is how often a person presses ^C in a test of something that was a matter
// of luck. Every run tries its luck, and make prove tries it for longer.
func repeats() int {
	if testing.Short() {
		return 5
	}
	return 25
}

// TestInterruptAlways presses ^C again and again, since a loop of a shell goes on if a
// single run does not end by the signal. The command says hello once it runs: a signal that
// comes while dash starts a command does not reach the command.
func TestInterruptAlways(t *testing.T) {
	for name, command := range map[string]string{
		"a command that does not read": "echo hello; exec sleep 1000",
		"a command that reads":         "exec cat",
		"a shell":                      "sh -c 'echo hello; exec sleep 1000'; true",
	} {
		t.Run(name, func(t *testing.T) {
			env := locksOf(t)
			for range repeats() {
				c := open(t, env, "holdfast", "run", "key", "--", "sh", "-c", command)
				if strings.HasSuffix(command, "cat") {
					c.cat("hello")
				} else {
					c.expect(`hello\r$`)
				}
				c.press(ctrlC)
				if s := c.end(); !s.Signaled() || s.Signal() != syscall.SIGINT {
					t.Fatalf("ended with %v, code %d:\n%s", s, s.ExitStatus(), c.text())
				}
			}
		})
	}
}

// TestInterruptEndsALoop has a loop of the shell that users have, which goes on after
// a command that ends with any exit code.
func TestInterruptEndsALoop(t *testing.T) {
	bash := servers.Installed(t, "bash", "bash")
	env := locksOf(t)
	holder := open(t, env, "holdfast", "run", "--ttl", "1m", "held", "--", "cat")
	holder.cat("hello")
	for name, test := range map[string]struct{ key, command, show string }{
		"that runs":  {"key", "sh -c 'echo hello; exec sleep 1000'", `hello\r$`},
		"that waits": {"held", "true", `^\^C?$|begun\r$`},
	} {
		t.Run(name, func(t *testing.T) {
			for range repeats() {
				c := open(t, env, bash, "-c",
					"echo begun; for i in 1 2 3; do holdfast run "+test.key+" -- "+test.command+"; done; echo went on")
				c.expect(test.show)
				if test.key == "held" {
					awaitWaiter(t, env)
				}
				c.press(ctrlC)
				if s := c.end(); !s.Signaled() || s.Signal() != syscall.SIGINT || strings.Contains(c.text(), "went on") {
					t.Fatalf("ended with %v, code %d:\n%s", s, s.ExitStatus(), c.text())
				}
			}
		})
	}
}

// awaitWaiter waits until somebody waits for the key held.
func awaitWaiter(t *testing.T, env []string) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < patient; {
		show := exec.Command("holdfast", "show", "held")
		show.Env = append(os.Environ(), env...)
		if out, _ := show.Output(); strings.Contains(string(out), "\nwaits\t") {
			return
		}
		_ = rest.For(t.Context(), startPause)
	}
	t.Fatal("nobody waits")
}

// TestFirmInterrupt presses ^C until a command that ignores it is killed.
func TestFirmInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	c := open(t, locksOf(t), "holdfast", "run", "key", "--", "worker", "log")
	logged(t, "log", "ready")
	c.press(ctrlC)
	logged(t, "log", "INT")
	c.press(ctrlC)
	logged(t, "log", "TERM")
	c.press(ctrlC)
	if s := c.end(); s.Signal() != syscall.SIGINT {
		t.Errorf("ended with %v, code %d", s, s.ExitStatus())
	}
}

// TestInterruptBeforeTheStoreAnswers presses ^C while a server is asked for the first
// time, which takes everything and says nothing.
func TestInterruptBeforeTheStoreAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	c := open(t, nil, "holdfast", "run", "--store", fmt.Sprintf("redis://%s", l.Addr()), "key", "--", "true")
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c.press(ctrlC)
	if took := time.Since(began); took > patience {
		unproved.Skipf(t, "^C came %v after the start, when the command had given up", took)
	}
	if s := c.end(); s.Signal() != syscall.SIGINT {
		t.Errorf("ended with %v, code %d:\n%s", s, s.ExitStatus(), c.text())
	}
}
