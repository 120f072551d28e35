package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// A console is a terminal with a command in its foreground, and a person.
type console struct {
	*testing.T
	keys  *os.File // what is written here is typed
	cmd   *exec.Cmd
	ended chan error

	mu     sync.Mutex
	screen bytes.Buffer
	seen   int // of the screen, by expect
}

// open starts a command on a terminal of its own.
func open(t *testing.T, env []string, name string, args ...string) *console {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	var number, locked uint32
	if err := errors.Join(
		cli.Ioctl(keys, syscall.TIOCGPTN, unsafe.Pointer(&number)),
		cli.Ioctl(keys, syscall.TIOCSPTLCK, unsafe.Pointer(&locked)),
	); err != nil {
		t.Fatal(err)
	}
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{T: t, keys: keys, cmd: exec.Command(name, args...), ended: make(chan error, 1)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = line, line, line
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	defer heed()()
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line.Close()
	go func() {
		io.Copy(c, keys) // until nobody has the terminal open any more
		c.ended <- c.cmd.Wait()
	}()
	t.Cleanup(func() { c.cmd.Process.Kill() })
	return c
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.Write(p)
}

func (c *console) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

func (c *console) press(keys string) {
	c.Helper()
	if _, err := c.keys.WriteString(keys); err != nil {
		c.Fatal(err)
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// expect waits until the screen shows a text after what was expected before.
func (c *console) expect(pattern string) {
	c.Helper()
	want := regexp.MustCompile("(?m)" + pattern)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patient)
	for {
		c.mu.Lock()
		text := c.screen.Bytes()[c.seen:]
		at := want.FindIndex(text)
		if at != nil {
			c.seen += at[1]
		}
		c.mu.Unlock()
		if at != nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			c.Fatalf("the screen does not show %s:\n%s", pattern, text)
		}
	}
}

// prompt waits until the shell asks for the next line. Earlier input might be flushed by a
// signal, or be read by the command before.
func (c *console) prompt() {
	c.Helper()
	c.expect(`% $`)
}

// cat types a line, and waits until cat has written it, too.
func (c *console) cat(line string) {
	c.Helper()
	c.press(line + "\n")
	c.expect(line + `\r\n(.*\n)*.*` + line + `\r\n`)
}

// end waits for the command and returns its state.
func (c *console) end() syscall.WaitStatus {
	c.Helper()
	select {
	case err := <-c.ended:
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			c.Fatal(err)
		}
	case <-time.After(patient):
		c.Fatalf("the command does not end:\n%s", c.text())
	}
	return c.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func locksOf(t *testing.T) []string {
	return []string{"HOLDFAST_STORE=file://" + t.TempDir() + "/locks", "PS1=% ", "ENV="}
}

func TestTerminalIsLentToACommandThatReadsFromIt(t *testing.T) {
	c := open(t, locksOf(t), "holdfast", "run", "key", "--", "cat")
	c.cat("hello")
	c.press(ctrlD)
	if s := c.end(); s.ExitStatus() != 0 {
		t.Errorf("ended with %v, want exit code 0", s)
	}
}

func TestInterruptEndsTheScriptAsWell(t *testing.T) {
	for name, command := range map[string]string{
		"of a command that reads":  "cat",
		"of one that does not":     "tail -f typed",
		"of a pipeline that reads": "cat | cat",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("typed", []byte("hello\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := open(t, locksOf(t), "sh", "-c", "holdfast run key -- "+command+"; echo went on")
			if command != "tail -f typed" {
				c.cat("hello")
			} else {
				c.expect(`hello\r$`)
			}
			c.press(ctrlC)
			if s := c.end(); s.Signal() != syscall.SIGINT || strings.Contains(c.text(), "went on") {
				t.Errorf("ended with %v:\n%s", s, c.text())
			}
		})
	}
}

func TestJobControl(t *testing.T) {
	c := open(t, append(locksOf(t), "JOBS="+t.TempDir()+"/jobs"), "sh", "-i", "-m")
	c.press("holdfast run --ttl 1h key -- cat; echo code $?\n") // the lock outlives each stop
	c.cat("hello")
	c.press(ctrlZ)
	c.expect(`(?i)stopped|suspended`)
	c.prompt()
	c.press("holdfast show key | cut -f1,2\n")
	c.expect(`^(% )?holds\texclusive\r$`)
	c.press("fg\n")
	c.cat("again")
	c.press(ctrlZ)
	c.expect(`(?i)stopped|suspended`)
	c.prompt()
	c.press("fg\n")
	c.cat("more")
	c.press(ctrlC)
	c.prompt()
	c.press("echo code $?\n")
	c.expect(`^(% )?code 130\r$`)

	// In the background it cannot read, and stops until it can.
	c.press("holdfast run --ttl 1h key -- cat &\n")
	c.press("until jobs >$JOBS; grep -qi 'stopped\\|suspended' $JOBS; do :; done; echo it stopped\n")
	c.expect(`^(% )?it stopped\r$`)
	c.press("fg\n")
	c.cat("back")
	c.press(ctrlD)
	c.prompt()
	c.press("holdfast ls; echo none\n")
	c.expect(`^(% )?none\r$`)
	c.press("exit\n")
	c.end()
}

// Worth 10 s: with a shorter TTL the lock may be lost on a busy machine before ^Z is pressed.
func TestStoppedForTooLong(t *testing.T) {
	c := open(t, locksOf(t), "sh", "-i", "-m")
	c.press("holdfast run --ttl 10s --grace 1s key -- cat\n")
	c.cat("hello")
	c.press(ctrlZ)
	c.expect(`(?i)stopped|suspended`)
	c.prompt()
	c.press("holdfast run --quiet key -- echo free\n") // as soon as the lease has ended
	c.expect(`^(% )?free\r$`)
	c.press("fg; echo code $?\n")
	c.expect(`^holdfast: "key" is not ours any more`)
	c.expect(`^(% )?code 74\r$`)
	c.press("exit\n")
	c.end()
}

func TestBreakAsksOnATerminal(t *testing.T) {
	env := locksOf(t)
	holder := open(t, env, "holdfast", "run", "--ttl", "1m", "key", "--", "cat")
	holder.cat("hello")
	for answer, code := range map[string]int{"\n": 1, "no\n": 1, ctrlD: 1} {
		c := open(t, env, "holdfast", "break", "key")
		c.expect(`^Take "key" away from .+@.+:\d+ \(id [0-9a-f]{16}, token \d+\)\? \[y/N\] $`)
		c.press(answer)
		c.expect(`holdfast: nothing was broken\r$`)
		if s := c.end(); s.ExitStatus() != code {
			t.Errorf("after %q: ended with %v, want exit code %d", answer, s, code)
		}
	}
	c := open(t, env, "holdfast", "break", "key")
	c.expect(`\[y/N\] $`)
	c.press("y\n")
	c.expect(`holdfast: took "key" away from `)
	if s := c.end(); s.ExitStatus() != 0 {
		t.Errorf("ended with %v, want exit code 0", s)
	}
	if s := holder.end(); s.ExitStatus() != 74 {
		t.Errorf("the holder ended with %v, want exit code 74", s)
	}
}

func TestTablesOnATerminal(t *testing.T) {
	env := locksOf(t)
	c := open(t, env, "holdfast", "run", "--note", "why", "key", "--", "sh", "-c", "holdfast ls; holdfast show key; holdfast show other")
	c.expect(`^KEY  KIND       OWNER +FOR  LEFT +TOKEN +WAITING  NOTE\r\n` +
		`key  exclusive  \S+@\S+:\d+  \d+s +[0-9.]+s +\d{10,}  0        why\r$`)
	c.expect(`^STATE  KIND       OWNER +FOR  LEFT +TOKEN +ID +NOTE\r\n` +
		`holds  exclusive  \S+@\S+:\d+  \d+s +[0-9.]+s +\d{10,}  [0-9a-f]{16}  why\r$`)
	c.expect(`^holdfast: "other" is free\r$`)
	if s := c.end(); s.ExitStatus() != 0 {
		t.Errorf("ended with %v, want exit code 0", s)
	}
}

func TestPlaceInTheQueueOnATerminal(t *testing.T) {
	env := locksOf(t)
	holder := open(t, env, "holdfast", "run", "--ttl", "1m", "key", "--", "cat")
	holder.cat("hello")
	c := open(t, env, "holdfast", "run", "--wait", "5m", "key", "--", "echo", "done")
	for range 2 { // in the place of the one before
		c.expect(`\r\x1b\[K\x1b\[\?7lholdfast: waiting for "key" for \d+s: next in the queue; held by \S+@\S+:\d+ \(cat\)\x1b\[\?7h`)
	}
	holder.press(ctrlD)
	holder.end()
	c.expect(`\r\x1b\[K\x1b\[\?7l\x1b\[\?7hdone\r$`)
	if s := c.end(); s.ExitStatus() != 0 {
		t.Errorf("ended with %v, want exit code 0", s)
	}
}
