// Command tally runs new seeds of the simulator's random tests, and counts the events in
// their worlds.
//
//	go run ./internal/sim/tally [-race] [-for 10m] [-save FILE]
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/publish"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// tests are the random tests, in the order of the table.
var tests = []string{
	"TestSeeds", "TestRedlock", "TestMemcached", "TestCAS", "TestSessions", "TestSQL", "TestOnce", "TestElect", "TestSchedlock",
}

func main() { publish.Main("tally", execute) }

func execute(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("tally", flag.ContinueOnError)
	race := flags.Bool("race", false, "run with the race detector")
	budget := flags.Duration("for", 10*time.Minute, "run new seeds for so long, all tests together")
	save := flags.String("save", "", "write the tables into this `file`, too, if nothing is wrong")
	if flags.Parse(args) != nil {
		return flag.ErrHelp
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("no arguments are known, and not %q", flags.Args())
	}
	folder, err := os.MkdirTemp("", "holdfast-tally-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	page := head(ctx, *race, *budget) // of the commit now, before the work
	if err := run(ctx, out, *race, *budget, folder); err != nil {
		return err
	}
	counts, err := read(folder)
	if err != nil {
		return err
	}
	text := tables(counts)
	fmt.Fprintf(out, "\n%s", text)
	if *save == "" {
		return nil
	}
	return os.WriteFile(*save, append(page, text...), 0o644)
}

// run runs the tests in sequence.
func run(ctx context.Context, out io.Writer, race bool, budget time.Duration, folder string) error {
	args := []string{"test", "-p=1", "-count=1", "-timeout=0", "-v", "-run=^(" + strings.Join(tests, "|") + ")$"}
	if race {
		args = append(args, "-race")
	}
	args = append(args, "./internal/sim", "./schedlock", "-args", fmt.Sprint("-for=", budget), "-counts="+folder)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd.Run()
}

// A row is the sum of the worlds of a test.
type row struct {
	test  string
	count sim.Count
}

// read reads the counts of the tests. The last row is the sum.
func read(folder string) (rows []row, err error) {
	all := row{test: "all"}
	for _, test := range tests {
		text, err := os.ReadFile(filepath.Join(folder, test+".json"))
		if err != nil {
			return nil, err
		}
		r := row{test: test}
		if err := json.Unmarshal(text, &r.count); err != nil {
			return nil, fmt.Errorf("%s: %w", test, err)
		}
		all.count.Add(&r.count)
		rows = append(rows, r)
	}
	return append(rows, all), nil
}

// A column is a number of each row.
type column struct {
	name string
	of   func(c *sim.Count) any
}

var work = []column{
	{"seeds", func(c *sim.Count) any { return c.Seeds }},
	{"virtual hours", func(c *sim.Count) any { return fmt.Sprintf("%.1f", c.Virtual.Hours()) }},
	{"grants", func(c *sim.Count) any { return c.Grants }},
	{"refusals", func(c *sim.Count) any { return c.Refusals }},
	{"accesses judged", func(c *sim.Count) any { return c.Looks }},
	{"losses", func(c *sim.Count) any { return c.Losses }},
	{"calls", func(c *sim.Count) any { return c.Calls }},
	{"free for at most", func(c *sim.Count) any {
		if c.Idle == 0 { // The judge does not measure it for effects and ticks.
			return "–"
		}
		return c.Idle.Round(time.Millisecond)
	}},
}

var links = []column{
	{"requests lost", func(c *sim.Count) any { return c.LostRequests }},
	{"replies lost", func(c *sim.Count) any { return c.LostReplies }},
	{"twice", func(c *sim.Count) any { return c.Duplicates }},
	{"late", func(c *sim.Count) any { return c.Late }},
	{"refused", func(c *sim.Count) any { return c.Refused }},
	{"reset", func(c *sim.Count) any { return c.Resets }},
	{"wake-ups lost", func(c *sim.Count) any { return c.LostWakes }},
	{"cuts", func(c *sim.Count) any { return c.Cuts }},
	{"slow starts", func(c *sim.Count) any { return c.SlowStarts }},
}

var processes = []column{
	{"stopped", func(c *sim.Count) any { return c.Stops }},
	{"suspended", func(c *sim.Count) any { return c.Suspends }},
	{"killed", func(c *sim.Count) any { return c.Kills }},
	{"closed", func(c *sim.Count) any { return c.Closes }},
	{"claims broken", func(c *sim.Count) any { return c.Breaks }},
	{"failures of the store", func(c *sim.Count) any { return c.Failures }},
}

// tables returns the tables of the rows.
func tables(rows []row) []byte {
	var b bytes.Buffer
	for _, t := range []struct {
		title   string
		columns []column
	}{
		{"What was judged", work}, {"Faults of links", links}, {"Faults of processes and stores", processes},
	} {
		fmt.Fprintf(&b, "## %s\n\n", t.title)
		names := []string{"test"}
		for _, c := range t.columns {
			names = append(names, c.name)
		}
		publish.Head(&b, names...)
		for _, r := range rows {
			cells := []string{r.test}
			for _, c := range t.columns {
				cells = append(cells, fmt.Sprint(c.of(&r.count)))
			}
			publish.Row(&b, cells...)
		}
		b.WriteString("\n")
	}
	return append(bytes.TrimSpace(b.Bytes()), '\n')
}

// head is the page up to the tables.
func head(ctx context.Context, race bool, budget time.Duration) []byte {
	detector := "without"
	if race {
		detector = "with"
	}
	return fmt.Appendf(nil, `# Tables of the simulator

"make sim" has written this file. [simulator.md](../simulator.md) says what the tests do and what the figures mean.

Commit %s, %s, %s, %s/%s, %d processors, %v %s the race detector. No violation.

`, cmp.Or(publish.Commit(ctx), "unknown"), time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), budget, detector)
}
