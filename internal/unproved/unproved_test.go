package unproved_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A recorder keeps what a test logs, in place of the log.
type recorder struct {
	testing.TB
	logged, skipped, failed string
}

func (r *recorder) Log(args ...any)                { r.logged += fmt.Sprintln(args...) }
func (r *recorder) Skip(args ...any)               { r.skipped += fmt.Sprintln(args...) }
func (r *recorder) Errorf(format string, _ ...any) { r.failed += format }

const words = "not proved on a machine this slow: "

// Each report is a line of the file, whatever was in the file before.
func TestReports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "unproved")
	t.Setenv(unproved.File, file)
	r := &recorder{TB: t}
	unproved.Logf(r, "only %d grants\nin all", 3)
	unproved.Skipf(r, "%d locks were lost", 7)
	if want := words + "only 3 grants\nin all\n"; r.logged != want {
		t.Errorf("logged %q, want %q", r.logged, want)
	}
	if want := words + "7 locks were lost\n"; r.skipped != want {
		t.Errorf("skipped with %q, want %q", r.skipped, want)
	}
	const test = "github.com/holdfast-go/holdfast/internal/unproved TestReports: "
	want := test + "only 3 grants in all\n" + test + "7 locks were lost\n"
	if text, err := os.ReadFile(file); string(text) != want || err != nil || r.failed != "" {
		t.Errorf("the file has %q, %v, %s; want %q", text, err, r.failed, want)
	}
}

func TestNoFile(t *testing.T) {
	t.Setenv(unproved.File, "")
	r := &recorder{TB: t}
	unproved.Logf(r, "only %d grants", 3)
	if want := words + "only 3 grants\n"; r.logged != want || r.failed != "" {
		t.Errorf("logged %q, failed with %q; want %q", r.logged, r.failed, want)
	}
}

// A report that "make test" cannot print is a failure.
func TestNoFolder(t *testing.T) {
	t.Setenv(unproved.File, filepath.Join(t.TempDir(), "none", "unproved"))
	r := &recorder{TB: t}
	unproved.Logf(r, "only %d grants", 3)
	if r.failed == "" {
		t.Error("a report is lost, and the test passes")
	}
}

func TestInTime(t *testing.T) {
	t.Setenv(unproved.File, "")
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			slow, tries int
			skips       bool
		}{
			"at once":       {slow: 0, tries: 1},
			"at the end":    {slow: 9, tries: 10},
			"not in time":   {slow: 10, tries: 10, skips: true},
			"never in time": {slow: 99, tries: 10, skips: true},
		} {
			r, tries := &recorder{TB: t}, 0
			unproved.InTime(r, time.Second, func() {
				if tries++; tries <= c.slow {
					time.Sleep(time.Second)
				}
			})
			if tries != c.tries || (r.skipped != "") != c.skips {
				t.Errorf("%s: %d tries, skipped with %q", name, tries, r.skipped)
			}
		}
	})
}
