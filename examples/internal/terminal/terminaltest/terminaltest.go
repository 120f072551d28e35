// Package terminaltest runs a program as in several terminals: each is a process of
// its own, whose lines a test reads, and which it answers by Enter.
package terminaltest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/unproved"
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

// next returns the next line, "" if the program has ended.
func (term *Terminal) next() string {
	term.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line := <-term.lines:
			if !isWarning(line) {
				return line
			}
			term.t.Log(line)
		case <-late:
			term.t.Fatal("the program says nothing")
		}
	}
}

// isWarning reports whether a program warns, for example that its lock is at risk, as it
// may on a busy machine.
func isWarning(line string) bool { return strings.HasPrefix(line, "WARN ") }

// Silent fails the test if the program has said something.
func (term *Terminal) Silent() {
	term.t.Helper()
	for {
		select {
		case line := <-term.lines:
			if !isWarning(line) {
				term.t.Fatalf("the program says %q, want nothing yet", line)
			}
			term.t.Log(line)
		default:
			return
		}
	}
}

// Table starts the program with these arguments and reads a table until the program ends: after a
// line, an empty line and the header, numbers by the name of their row and their column. Cells without
// a number are left out. If a process may have lost its lock in a pause of this machine, Table starts
// the program again, three times in all.
func Table(t *testing.T, args ...string) map[string]map[string]int {
	t.Helper()
	for try := 1; ; try++ {
		term := Start(t, args...)
		lines := term.rest()
		loss := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, holdfast.ErrLost.Error()) })
		if loss < 0 {
			return term.table(lines)
		}
		if try == 3 {
			t.Fatalf("three runs have lost a lock, the last one with: %s", lines[loss])
		}
		unproved.Logf(t, "the table: %s", lines[loss])
	}
}

// rest returns all lines until the program ends.
func (term *Terminal) rest() (lines []string) {
	for line := range term.lines {
		if isWarning(line) {
			term.t.Log(line)
		} else {
			lines = append(lines, line)
		}
	}
	return lines
}

// table returns the numbers of a table.
func (term *Terminal) table(lines []string) map[string]map[string]int {
	term.t.Helper()
	if len(lines) < 3 || lines[1] != "" {
		term.t.Fatalf("the program has printed no table:\n%s", strings.Join(lines, "\n"))
	}
	columns := cells(lines[2])
	rows := make(map[string]map[string]int)
	for _, line := range lines[3:] {
		row := cells(line)
		if len(row) != len(columns) {
			term.t.Fatalf("%q is no row of the table; the program says:\n%s", line, strings.Join(lines, "\n"))
		}
		rows[row[0]] = make(map[string]int)
		for i, column := range columns {
			if n, err := strconv.Atoi(row[i]); err == nil {
				rows[row[0]][column] = n
			}
		}
	}
	return rows
}

// cells are apart by two spaces or more.
func cells(line string) []string {
	return regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
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
