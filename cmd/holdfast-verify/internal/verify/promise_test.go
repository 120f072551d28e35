package verify

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// The documents name all that is excused, and nothing else.
func TestDocumentNamesWaivers(t *testing.T) {
	documented := documentedWaivers(t)
	compare := func(after string, waived []check.Promise) {
		if got, want := sorted(documented[after]), sorted(waived); !slices.Equal(got, want) {
			t.Errorf("%s: the document excuses %q, and verify %q", after, got, want)
		}
		delete(documented, after)
	}
	for _, s := range starters {
		target := &target{starter: s, url: parsed(t, s.like)}
		for _, n := range plan.Nemeses() {
			if !target.can(n) {
				continue
			}
			compare(s.name+" "+string(n), target.waived(n))
			if n == plan.Clock || n == plan.WorkerClock {
				for _, forgets := range forgetting[target.url.Scheme] {
					compare(s.name+" "+string(n)+" with "+string(forgets), []check.Promise{check.Growing, check.Fenced})
				}
			}
		}
	}
	if len(documented) > 0 {
		t.Errorf("the document excuses what cannot be: %v", documented)
	}
}

// documentedWaivers reads the table of what is excused: by servers and fault, or two
// faults in one run.
func documentedWaivers(t *testing.T) map[string][]check.Promise {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| servers | after | not held against them |\n|---|---|---|\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("the document has no table of what is excused")
	}
	words := func(cell string) (all []string) {
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			all = append(all, match[1])
		}
		return all
	}
	excused := make(map[string][]check.Promise)
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			t.Fatalf("the line has other columns than the head: %s", line)
		}
		first, second, together := strings.Cut(cells[1], " with ")
		for _, servers := range words(cells[0]) {
			for _, fault := range words(first) {
				faults := []string{servers + " " + fault}
				if together {
					faults = nil
					for _, other := range words(second) {
						faults = append(faults, servers+" "+fault+" with "+other)
					}
				}
				for _, fault := range faults {
					for _, p := range words(cells[2]) {
						excused[fault] = append(excused[fault], check.Promise(p))
					}
				}
			}
		}
	}
	return excused
}

func sorted(all []check.Promise) []check.Promise { return slices.Sorted(slices.Values(all)) }
