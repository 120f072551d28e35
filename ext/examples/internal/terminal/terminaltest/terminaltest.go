// Package terminaltest runs a program as in several terminals: each is a process of
// its own, whose lines a test reads, and which it answers by Enter.
package terminaltest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The programs are the test's own binary, with this variable set.
const variable = "HOLDFAST_TEST_PROGRAM"

// Inside reports whether TestMain has to run the program and not the tests.
func Inside() bool { return os.Getenv(variable) != "" }

// A Terminal is a process.
type Terminal struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string
}

// Start starts the program with these arguments. It ends with the test.
func Start(t *testing.T, args ...string) *Terminal {
	t.Helper()
	term := &Terminal{t: t, cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 100)}
	term.cmd.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	in, err := term.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := term.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	term.in, term.cmd.Stderr = in, term.cmd.Stdout
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(term.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			term.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		term.Kill()
		for range term.lines { // until the process has ended
		}
		term.cmd.Wait()
	})
	return term
}

// Expect fails the test unless the next line contains the text.
func (term *Terminal) Expect(text string) {
	term.t.Helper()
	if line := term.next(); !strings.Contains(line, text) {
		term.t.Fatalf("the program says %q, want %q", line, text)
	}
}

// Either reports which of two texts is in the next line: true for the first.
func (term *Terminal) Either(first, second string) bool {
	term.t.Helper()
	line := term.next()
	if !strings.Contains(line, first) && !strings.Contains(line, second) {
		term.t.Fatalf("the program says %q, want %q or %q", line, first, second)
	}
	return strings.Contains(line, first)
}

// next returns the next line, "" if the program has ended.
func (term *Terminal) next() string {
	term.t.Helper()
	select {
	case line := <-term.lines:
		return line
	case <-time.After(time.Minute):
		term.t.Fatal("the program says nothing")
		return ""
	}
}

// Silent fails the test if the program has said something.
func (term *Terminal) Silent() {
	term.t.Helper()
	select {
	case line := <-term.lines:
		term.t.Fatalf("the program says %q, want nothing yet", line)
	default:
	}
}

// Enter presses Enter.
func (term *Terminal) Enter() {
	term.t.Helper()
	if _, err := io.WriteString(term.in, "\n"); err != nil {
		term.t.Error(err)
	}
}

// Kill ends the process as kill -9 does.
func (term *Terminal) Kill() { term.cmd.Process.Kill() }
