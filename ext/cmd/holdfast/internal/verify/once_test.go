//go:build unix

package verify

import (
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// An effect has one owner at a time, whose lock is put to the proof as others are.
func TestOnlyEffects(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Seed, c.Length, c.Fewest = 1, 6*time.Second, 1
	c.TTL = time.Second
	c.Command = []string{os.Args[0], "work"}
	c.Stderr = os.Stderr
	c.Kinds, c.Nemeses = []plan.Kind{plan.Once}, []plan.Nemesis{plan.Kill}
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if report.Effects == 0 || report.Grants < report.Effects || report.Operations <= report.Grants {
		t.Errorf("%d effects under %d locks by %d operations", report.Effects, report.Grants, report.Operations)
	}
}
