// Command replay runs a seed of the simulator exactly, and shows a timeline. The same seed
// gives the same timeline, byte by byte.
//
//	go run ./internal/sim/replay [-test TestSeeds] [-overlay FILE] [-out FOLDER] SEED
//
// The first replay compiles the standard library with a few edits for half a minute. Then
// all randomness of the runtime comes from one generator that exact.Seed sets, and nothing
// depends on real time. The edits are replacements in the source of the installed Go; this
// repository has no copy of Go. A seed decides everything but the order in which
// goroutines run. A test leaves the order to chance; replay fixes the order. So the
// command tries up to 100 orders until one fails, and reports that order.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/publish"
)

const (
	module    = "github.com/holdfast-go/holdfast"
	simulator = module + "/internal/sim"
	orders    = 100
	shown     = 60 // lines
)

func main() { publish.Main("replay", execute) }

func execute(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	test := flags.String("test", "TestSeeds", "the `test` whose seed it is")
	extra := flags.String("overlay", "", "a `list` of further replaced files, such as those of a mutant")
	folder := flags.String("out", filepath.Join("bin", "replay"), "the `folder` for the timeline, as text and as a page")
	if flags.Parse(args) != nil {
		return flag.ErrHelp
	}
	seed, err := strconv.ParseUint(flags.Arg(0), 10, 64)
	if err != nil || flags.NArg() != 1 {
		return fmt.Errorf("want one seed, which is a number, as in make replay SEED=42; not %q", flags.Args())
	}
	if *folder, err = filepath.Abs(*folder); err != nil {
		return err
	}
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		return err
	}
	program := filepath.Join(*folder, "sim.test")
	if err := build(ctx, home(*test), program, *extra); err != nil {
		return err
	}
	defer os.Remove(program)
	order, failure, err := search(ctx, program, *test, seed, *folder)
	if err != nil {
		return err
	}
	return show(out, *folder, order, failure)
}

// home is the package of a test.
func home(test string) string {
	if test == "TestSchedlock" {
		return module + "/schedlock" // The simulator is in the root module, which requires no other.
	}
	return simulator
}

// search runs a seed in one order after the other until a run fails, and leaves the
// timeline of the last run in the folder. If no order fails, the last run is the first
// order again.
func search(ctx context.Context, program, test string, seed uint64, folder string) (order int, failure string, err error) {
	for order = range orders {
		if failure, err = run(ctx, program, test, seed, order, folder); err != nil || failure != "" {
			return order, failure, err
		}
	}
	failure, err = run(ctx, program, test, seed, 0, folder)
	return 0, failure, err
}

// run runs a seed in a separate process.
func run(ctx context.Context, program, test string, seed uint64, order int, folder string) (failure string, err error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"-test.run=^" + test + "$", "-test.timeout=5m"},
		fmt.Sprint("-seed=", seed), fmt.Sprint("-order=", order), "-timeline="+folder)...)
	cmd.Env = append(os.Environ(), env...)
	said, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case bytes.Contains(said, []byte("no tests to run")):
		return "", fmt.Errorf("there is no %s in %s", test, home(test))
	case err == nil:
		return "", nil
	case errors.As(err, &ended) && ctx.Err() == nil:
		return cmp.Or(strings.TrimSpace(string(said)), err.Error()), nil
	}
	return "", err
}

// verdict matches the line of a test that reports the violation.
var verdict = regexp.MustCompile(`seed \d+: .*`)

// show prints the end of the timeline, and the violation.
func show(out io.Writer, folder string, order int, failure string) error {
	path := filepath.Join(folder, "timeline.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		return errors.Join(err, errors.New(failure))
	}
	head, events, _ := strings.Cut(string(text), "\n\n")
	lines := strings.Split(strings.TrimSpace(events), "\n")
	end := len(lines)
	for i, line := range lines {
		if strings.Contains(line, " wrong  ") {
			end = i + 1
			break
		}
	}
	from := max(0, end-shown)
	fmt.Fprintf(out, "%s\n\n... %d events before\n%s\n... %d events after\n\n", head, from, strings.Join(lines[from:end], "\n"), len(lines)-end)
	if failure == "" {
		fmt.Fprintf(out, "nothing was wrong, in %d orders of goroutines\n", orders)
	} else {
		fmt.Fprintf(out, "order %d of goroutines fails:\n%s\n", order, cmp.Or(verdict.FindString(failure), failure))
	}
	_, err = fmt.Fprintf(out, "all events: %s, and for a browser: %s\n", path, filepath.Join(folder, "timeline.html"))
	return err
}
