package sim

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/unproved"
)

// rehearse runs worlds that take half an hour each, and returns their seeds and the report.
func rehearse(t *testing.T, fixed string, least int64, args ...string) (seeds []uint64, report string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unproved")
	t.Setenv(unproved.File, file)
	t.Setenv(seedVariable, fixed)
	synctest.Test(t, func(t *testing.T) {
		flags := flag.NewFlagSet("", flag.PanicOnError)
		s := NewSeeds(flags, "./internal/sim")
		_ = flags.Parse(args)
		s.Run(t, 0.5, least, func(_ *testing.T, seed uint64) *World {
			time.Sleep(30 * time.Minute)
			seeds = append(seeds, seed)
			return &World{Count: Count{Seeds: 1, Grants: 1}}
		})
	})
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return seeds, string(text)
}

// A test whose seeds are fixed runs the same worlds on every machine.
func TestFixedSeedsAreTheSameWorlds(t *testing.T) {
	seeds, report := rehearse(t, "7", 3)
	if want := []uint64{7 << 16, 7<<16 + 1, 7<<16 + 2}; !slices.Equal(seeds, want) || report != "" {
		t.Errorf("ran %d, and reported %q; want %d", seeds, report, want)
	}
}

// A test without fixed seeds runs for its share, and longer if it owes worlds. A report says if
// it has not run them all.
func TestOwedWorlds(t *testing.T) {
	for _, c := range []struct {
		fixed       string
		least       int64
		worlds      int
		report      string
		description string
	}{
		{"", 1, 2, "", "an hour is its share"},
		{"", 5, 5, "", "a slow machine"},
		{"", 10, 6, "only 6 of 10 worlds were run", "a machine too slow"},
		{"7", 1, 2, "", "-for overrides the number"},
	} {
		seeds, report := rehearse(t, c.fixed, c.least, "-for=2h")
		if len(seeds) != c.worlds || !strings.Contains(report, c.report) || c.report == "" && report != "" {
			t.Errorf("%s: ran %d worlds, and reported %q; want %d worlds and %q", c.description, len(seeds), report, c.worlds, c.report)
		}
	}
}

// On a machine too slow for all worlds, the package ends before its limit, and a report says so.
func TestNoWorldNearTheLimit(t *testing.T) {
	t.Setenv(seedVariable, "7")
	for limit, want := range map[time.Duration]bool{0: true, time.Hour: true, time.Minute: false} {
		flags := flag.NewFlagSet("", flag.PanicOnError)
		flags.Duration("test.timeout", limit, "")
		s := NewSeeds(flags, "./internal/sim")
		s.began = time.Now().Add(-50 * time.Second)
		if more := s.more(0.5, 3); more(&Count{Seeds: 1, Grants: 1}) != want {
			t.Errorf("50 s of %v are over: want a further world %t", limit, want)
		}
	}
}
