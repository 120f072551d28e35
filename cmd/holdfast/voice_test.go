//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// deafs are what stderr can be when nobody listens to holdfast: what is written
// there breaks a pipe, or waits for ever.
var deafs = map[string]func(*testing.T) *os.File{
	"a closed pipe": func(t *testing.T) *os.File {
		r, w := pipe(t)
		r.Close()
		return w
	},
	"a full pipe": func(t *testing.T) *os.File {
		_, w := pipe(t)
		fd := int(w.Fd())
		if err := syscall.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		for size := 4096; size > 0; size /= 2 {
			for {
				if _, err := syscall.Write(fd, make([]byte, size)); err != nil {
					break
				}
			}
		}
		if err := syscall.SetNonblock(fd, false); err != nil {
			t.Fatal(err)
		}
		return w
	},
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// deaf starts a program with a stderr that nobody reads.
func deaf(t *testing.T, stderr *os.File, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

// code waits for the end of a program. A program ended by a signal has the code -1.
func code(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	hurry := time.AfterFunc(patient, func() { cmd.Process.Kill() })
	defer hurry.Stop()
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// logged waits until the log of a worker has a line that begins with word, and
// returns the rest of that line.
func logged(t *testing.T, log, word string) (rest string) {
	t.Helper()
	servers.Until(t, fmt.Sprintf("a line %q in %s", word, log), func() (found bool) {
		text, _ := os.ReadFile(log)
		for line := range strings.Lines(string(text)) {
			if rest, found = strings.CutPrefix(line, word); found {
				return true
			}
		}
		return false
	})
	return strings.TrimSpace(rest)
}

// A flush ends when the lines before it are written.
func TestFlush(t *testing.T) {
	r, w := io.Pipe()
	v := newVoice(w)
	v.Write([]byte("one\n"))
	v.Write([]byte("two\n"))
	go func() {
		v.flush()
		w.Close()
	}()
	if text, err := io.ReadAll(r); string(text) != "one\ntwo\n" || err != nil {
		t.Errorf("%q is written at the end of the flush, %v", text, err)
	}
}

// A command that cannot speak has to end, and to kill what ignores a signal.
func TestNobodyListens(t *testing.T) {
	for name, stderr := range deafs {
		t.Run(name, func(t *testing.T) {
			t.Run("when the lock is lost", func(t *testing.T) { lostUnheard(t, stderr(t)) })
			t.Run("when the lock is held", func(t *testing.T) { heldUnheard(t, stderr(t)) })
			t.Run("when the store warns", func(t *testing.T) {
				t.Chdir(t.TempDir())
				dir, _ := os.Getwd()
				cmd := deaf(t, stderr(t), "ailing", "run", "--store", "ailing://"+dir, "key", "--", "sh", "-c", "exit 5")
				if got := code(t, cmd); got != 5 {
					t.Errorf("exit code %d, want that of the command", got)
				}
			})
		})
	}
}

// lostUnheard breaks the lock of a command that obeys TERM, and has started a process: one
// that obeys, in a grace that a busy machine does not need, and one that does not.
func lostUnheard(t *testing.T, stderr *os.File) {
	t.Chdir(t.TempDir())
	dir, _ := os.Getwd()
	t.Setenv("HOLDFAST_STORE", "file://"+dir+"/locks")
	breakUnheard(t, stderr, "30s", "worker child TERM=0 & exec worker log TERM=0")
	for _, log := range []string{"log", "child"} {
		if text, _ := os.ReadFile(log); !bytes.Contains(text, []byte("\nTERM\n")) {
			t.Errorf("%s has no TERM before the end:\n%s", log, text)
		}
		if err := os.Remove(log); err != nil {
			t.Error(err)
		}
	}
	breakUnheard(t, stderr, "1s", "worker child & exec worker log TERM=0")
}

// breakUnheard breaks the lock of a script that has started the workers log and child.
func breakUnheard(t *testing.T, stderr *os.File, grace, script string) {
	t.Helper()
	cmd := deaf(t, stderr, "holdfast", "run", "--ttl", "1m", "--grace", grace, "key", "--", "sh", "-c", script)
	logged(t, "log", "ready")
	child, err := strconv.Atoi(logged(t, "child", "ready"))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	if err := insist(func() (err error) {
		out, err = exec.Command("holdfast", "break", "key", "--yes").CombinedOutput()
		return err
	}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := code(t, cmd); got != cli.ExitLost {
		t.Errorf("ended with %v, want exit code %d", cmd.ProcessState, cli.ExitLost)
	}
	t.Cleanup(func() {
		if !gone(child) {
			syscall.Kill(child, syscall.SIGKILL)
		}
	})
	servers.Until(t, "the end of a process of the command, which has no lock", func() bool { return gone(child) })
}

// heldUnheard refuses a run.
func heldUnheard(t *testing.T, stderr *os.File) {
	t.Chdir(t.TempDir())
	dir, _ := os.Getwd()
	t.Setenv("HOLDFAST_STORE", "file://"+dir+"/locks")
	holder := deaf(t, nil, "holdfast", "run", "--ttl", "1m", "key", "--", "worker", "log", "TERM=0")
	logged(t, "log", "ready")
	got := 0
	servers.Until(t, "an answer of the store", func() bool {
		got = code(t, deaf(t, stderr, "holdfast", "run", "--try", "key", "--", "true"))
		return got != cli.ExitUnreachable
	})
	if got != cli.ExitHeld {
		t.Errorf("exit code %d, want %d", got, cli.ExitHeld)
	}
	holder.Process.Signal(syscall.SIGTERM)
	if got := code(t, holder); got != 0 {
		t.Errorf("the holder ended with %d", got)
	}
}
