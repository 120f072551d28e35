// Package unproved reports that a test could not judge because the machine was slow, or its clock
// was set. The test does not fail, and "go test" hides the log of a test that passes. So the report
// also goes to the file that the variable File names; "make test" prints the file at the end.
package unproved

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// File is the environment variable with the path of the file. If File is not set, the
// report is in the log of the test only. A test with nothing to report does not read File, so
// the result of the test may come from the cache of Go, whatever the path is.
const File = "HOLDFAST_TEST_UNPROVED"

const because = "not proved on a machine this slow: "

// Logf reports a claim that the test has not proved, or the reason.
func Logf(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Log(because + report(t, fmt.Sprintf(format, args...)))
}

// Skipf reports like Logf, and skips the rest of the test.
func Skipf(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Skip(because + report(t, fmt.Sprintf(format, args...)))
}

// InTime repeats steps, ten times at most, until the steps take less than limit. If they never do,
// InTime skips the rest of the test: claims may have ended before the test has looked at them.
func InTime(t testing.TB, limit time.Duration, steps func()) {
	t.Helper()
	var took time.Duration
	for range 10 {
		began := time.Now()
		steps()
		if took = time.Since(began); took < limit {
			return
		}
	}
	Skipf(t, "each of ten tries took %v or longer, the last %v", limit, took)
}

// report appends a line to the file, and returns the text.
func report(t testing.TB, text string) string {
	t.Helper()
	name := os.Getenv(File)
	if name == "" {
		return text
	}
	var program string
	if info, ok := debug.ReadBuildInfo(); ok {
		program = strings.TrimSuffix(info.Path, ".test")
	}
	line := strings.Join(strings.Fields(text), " ")
	// One write for the whole line: tests of several processes append to the file.
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, "%s %s: %s\n", program, t.Name(), line)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Errorf("%s: %v", File, err)
	}
	return text
}
