package cli

import (
	"fmt"
	"io"
	"os"
)

// Terminal reports whether a stream is a terminal.
func Terminal(stream any) bool {
	if wrapped, ok := stream.(interface{ Unwrap() io.Writer }); ok {
		stream = wrapped.Unwrap()
	}
	f, ok := stream.(*os.File)
	return ok && isTerminal(f)
}

// Progress returns a function that writes a line over the previous line, on a terminal
// only. The terminal cuts a line that is too long.
func Progress(stderr io.Writer) func(line string) {
	if !Terminal(stderr) {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintf(stderr, "\r\x1b[K\x1b[?7l%s\x1b[?7h", line) }
}
