// Package cli is shared by the commands of this project: exit codes, lines for people, JSON
// for programs, and processes that play a part.
package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The rules of the interface:
//
//   - stdout carries only the answer: lists, JSON, help, completions. run leaves stdout
//     to the command.
//   - Everything else goes to stderr, in one line that begins with "holdfast: ". The line
//     names the error and, if possible, the remedy.
//   - Lists are tables on a terminal. In a pipe, lists are columns with one tab in between,
//     absolute times and seconds without units; a header only comes on request.
//   - JSON is for programs: the names stay, and tokens are decimal strings.
//   - Keys, owners and notes come from other people, so unprintable characters are escaped
//     before a person sees the text, in JSON too.
//   - Questions are asked on a terminal only, and "no" is the default.
//   - The exit code is part of the interface. The numbers are those of sysexits.h and of
//     the shells, and so rarely equal those of a command.
const (
	ExitFailed      = 1   // nothing to break, the answer was no, or stdout cannot be written
	ExitUsage       = 64  // wrong flag, key or URL: nothing has been tried
	ExitUnreachable = 69  // the store cannot be opened or does not answer
	ExitLost        = 74  // the lock was lost while the command ran, or the wait for it broken
	ExitHeld        = 75  // the lock is held by another process; try again later
	ExitUnproved    = 77  // verify has neither found nor proved anything, though locks were granted; Automake and others count 77 as skipped
	ExitNotRunnable = 126 // the command is there but cannot be executed
	ExitNotFound    = 127 // there is no such command
	ExitSignal      = 128 // plus n: the command was ended by signal n
)

// An Exit ends the command with a code and, unless Err is nil, with a line on stderr.
type Exit struct {
	Code  int
	Err   error
	By    os.Signal // the signal to end by, for the shell to see; nil to end with Code
	Group bool      // the signal is for the whole process group
}

func (e *Exit) Error() string { return fmt.Sprintf("exit %d: %v", e.Code, e.Err) }
func (e *Exit) Unwrap() error { return e.Err }

// Failure is the exit with a code and a reason.
func Failure(code int, err error) error { return &Exit{Code: code, Err: err} }

// EndedBy is the exit after a signal to end.
func EndedBy(s os.Signal) *Exit { return &Exit{Code: ExitSignal + signalNumber(s), By: s} }

// Usage is a failure that the help of a command explains.
func Usage(command, format string, args ...any) error {
	return Failure(ExitUsage, fmt.Errorf(format+"; see "+command+" --help", args...))
}

// Report writes an error for the user and returns the exit code.
func Report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	e := &Exit{Code: ExitUsage, Err: err} // an error of the flag parser
	if unwritten := (*fs.PathError)(nil); errors.As(err, &unwritten) {
		e.Code = ExitFailed
	}
	errors.As(err, &e)
	if e.Err != nil {
		Say(w, "%v", e.Err)
	}
	return e.Code
}

// Obey ends the process by a signal if the error names one.
func Obey(err error) {
	if e := (*Exit)(nil); errors.As(err, &e) && e.By != nil {
		endBy(e.By, e.Group)
	}
}

// Say writes one line for a person.
func Say(w io.Writer, format string, args ...any) {
	text := strings.TrimPrefix(fmt.Sprintf(format, args...), "holdfast: ")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	line := strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
	fmt.Fprintf(w, "holdfast: %s\n", escape(line, unprintable))
}

// Short formats a duration without trailing zeros: 1h and not 1h0m0s.
func Short(d time.Duration) string {
	text := d.String()
	if s, ok := strings.CutSuffix(text, "m0s"); ok {
		text = s + "m"
	}
	if s, ok := strings.CutSuffix(text, "h0m"); ok {
		text = s + "h"
	}
	return text
}

// Clean makes text from other people safe to print, on one line and in one column. A
// backslash is escaped too, so that text cannot pass for an escape.
func Clean(text string) string {
	return escape(text, func(r rune) bool { return r == '\\' || unprintable(r) })
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// escape replaces runes as Go strings do.
func escape(text string, which func(rune) bool) string {
	if !strings.ContainsFunc(text, which) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if which(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
