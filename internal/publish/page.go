package publish

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// Head writes the first two lines of a table in Markdown. The first column is text.
func Head(w io.Writer, cells ...string) {
	Row(w, cells...)
	fmt.Fprintf(w, "|---%s|\n", strings.Repeat("|---:", len(cells)-1))
}

// Row writes a line of a table.
func Row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

// Thousands formats a number with a comma after every third digit.
func Thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Commit names the commit of the working directory as build.Version does, with a + after
// uncommitted changes, or returns "" outside of a checkout. "go run" does not record the
// commit in the program.
func Commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=12").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
