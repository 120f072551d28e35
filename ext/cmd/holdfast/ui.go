package main

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
//   - stdout carries what was asked for and nothing else: lists, JSON, help,
//     completions. run leaves it to the command that it runs.
//   - Whatever else there is to say goes to stderr, in one line that begins
//     with "holdfast: ", tells what is wrong, and where it can, what to do.
//   - Lists are tables on a terminal. In a pipe they are columns with one tab
//     between them and no header: absolute times, seconds, no units.
//   - JSON is for programs: its names stay, tokens are decimal strings.
//   - Keys, owners and notes come from others, so what is not printable in
//     them is escaped before a person sees it.
//   - Questions are asked on a terminal only, and "no" is the default.
//   - The exit code is part of the interface. These are the numbers of
//     sysexits.h and of the shells, so they rarely meet those of a command.
const (
	exitFailed      = 1   // nothing to break, the answer was no, or stdout cannot be written
	exitUsage       = 64  // wrong flag, key or URL: nothing has been tried
	exitUnreachable = 69  // the store cannot be opened or does not answer
	exitLost        = 74  // the lock was lost while the command ran, or the wait for it broken
	exitHeld        = 75  // the lock is held by another; try again later
	exitNotRunnable = 126 // the command is there but cannot be executed
	exitNotFound    = 127 // there is no such command
	exitSignal      = 128 // plus n: the command, or a wait, ended by signal n
)

// An exit ends holdfast with a code and, unless err is nil, with a line on
// stderr.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return fmt.Sprintf("exit %d: %v", e.code, e.err) }
func (e *exit) Unwrap() error { return e.err }

func failure(code int, err error) error { return &exit{code, err} }

// usage is a failure that the help of a command can cure.
func usage(command, format string, args ...any) error {
	return failure(exitUsage, fmt.Errorf(format+"; see "+command+" --help", args...))
}

// report tells the user of an error and returns the exit code for it.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	e := &exit{exitUsage, err} // what cobra finds wrong
	if unwritten := (*fs.PathError)(nil); errors.As(err, &unwritten) {
		e.code = exitFailed
	}
	errors.As(err, &e)
	if e.err != nil {
		say(w, "%v", e.err)
	}
	return e.code
}

// say writes one line for a person.
func say(w io.Writer, format string, args ...any) {
	text := strings.TrimPrefix(fmt.Sprintf(format, args...), "holdfast: ")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	line := strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
	fmt.Fprintf(w, "holdfast: %s\n", escape(line, unprintable))
}

// short is a duration without zeros that say nothing: 1h and not 1h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if s, ok := strings.CutSuffix(text, "m0s"); ok {
		text = s + "m"
	}
	if s, ok := strings.CutSuffix(text, "h0m"); ok {
		text = s + "h"
	}
	return text
}

// clean makes text of others safe to print, on one line and in one column, so
// that it can be told from what looks like an escape.
func clean(text string) string {
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

// terminal reports whether people sit at the other end of a stream.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isTerminal(f)
}
