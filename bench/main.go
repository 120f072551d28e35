// Command bench measures Holdfast against the usual alternatives, on real servers that the
// command starts. The sides of a store take turns within one run, so that a busy machine
// slows all of them. The command prints tables in Markdown, draws a picture of the tables,
// and prints the path of the picture.
//
//	go run ./bench -run redis/ -short
//
// docs/bench.md explains the tables. The command is a separate module, so that the
// remaining modules do not depend on the alternatives.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/worker"
	"github.com/holdfast-go/holdfast/internal/publish"
)

func main() {
	switch worked, err := worker.Serve(); {
	case !worked:
		publish.Main("bench", execute)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	match := flags.String("run", "", "run only what matches this `regexp`, of the form store/bench")
	brief := flags.Bool("short", false, "take ten minutes, for a first impression")
	list := flags.Bool("list", false, "list what there is")
	save := flags.String("save", "", "write the tables and pictures of them into this `folder`, too; those of a part replace none")
	redraw := flags.String("draw", "", "measure nothing, and draw the pictures of the tables in this `folder` again")
	seed := flags.Uint64("seed", 0, "shuffle the order of the sides with this `number`, in place of a random one")
	locks := flags.Int("held", 0, "hold so many `locks`, ten times as many in Redis, in place of 10,000, or of 500 with -short")
	if flags.Parse(args) != nil {
		return flag.ErrHelp // the flag set has printed the error
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: -run chooses what to run", flags.Arg(0))
	}
	if *locks < 0 {
		return fmt.Errorf("-held %d: want a number of locks", *locks)
	}
	if *redraw != "" {
		return redrawn(*redraw, out)
	}
	s := full
	if *brief {
		s = short
	}
	if *locks > 0 {
		s.held = *locks
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000) + 1
	}
	p, err := newPlan(*match, s, *seed)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *list {
		fmt.Fprintln(out, strings.Join(p.names(), "\n"))
		return nil
	}
	if *save == "" {
		return p.show(ctx, out)
	}
	part := *match != "" || *brief || *locks > 0
	return p.save(ctx, *save, part, out)
}

// The files that -save writes.
const (
	tablesFile  = "bench-tables.md"
	pictureFile = "bench.svg"
	smallFile   = "redis.svg"
)

// show runs the plan, and writes the picture into the folder for temporary files. If the
// picture shows none of the benches, show writes no picture.
func (p plan) show(ctx context.Context, out io.Writer) error {
	var text bytes.Buffer
	if err := p.runAll(ctx, io.MultiWriter(out, &text)); err != nil {
		return err
	}
	whole, _ := pictures(text.String())
	if len(whole.Groups) == 0 {
		return nil
	}
	name, err := temporary("holdfast-bench-*.svg", whole.Draw())
	if err == nil {
		fmt.Fprintf(out, "\nPicture: %s\n", name)
	}
	return err
}

// save runs the plan, and also writes the results into a folder. After a failure, save writes
// the tables so far into the folder for temporary files, because they took long to measure.
func (p plan) save(ctx context.Context, folder string, part bool, out io.Writer) error {
	if err := publish.Savable(folder, part, tablesFile, pictureFile, smallFile); err != nil {
		return err
	}
	var text bytes.Buffer
	text.WriteString(tablesHead)
	if err := p.runAll(ctx, io.MultiWriter(out, &text)); err != nil {
		return errors.Join(err, keep(text.Bytes()))
	}
	return errors.Join(os.WriteFile(filepath.Join(folder, tablesFile), text.Bytes(), 0o644), draw(folder, text.String()))
}

// keep writes the tables of a run that failed, and returns an error that names the file.
func keep(text []byte) error {
	name, err := temporary("holdfast-bench-*.md", text)
	if err != nil {
		return err
	}
	return fmt.Errorf("the tables so far are in %s, and nothing is saved", name)
}

// temporary writes a file into the folder for temporary files, and returns its name.
func temporary(pattern string, text []byte) (name string, err error) {
	file, err := os.CreateTemp("", pattern)
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	return file.Name(), errors.Join(err, file.Close())
}

// redrawn draws the pictures of saved tables, and prints the tables of README.md and of
// docs/bench.md.
func redrawn(folder string, out io.Writer) error {
	file := filepath.Join(folder, tablesFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("-draw: %w", err)
	}
	if whole, _ := pictures(string(text)); len(whole.Groups) == 0 {
		return fmt.Errorf("-draw: %s has no table of a bench that the picture shows", file)
	}
	speed, fairness := ratios(string(text))
	fmt.Fprintln(out, speed)
	fmt.Fprintln(out, fairness)
	fmt.Fprint(out, summary(string(text)))
	return draw(folder, string(text))
}

// draw writes the pictures of tables. The small picture needs tables of its store.
func draw(folder, text string) error {
	whole, small := pictures(text)
	err := os.WriteFile(filepath.Join(folder, pictureFile), whole.Draw(), 0o644)
	if len(small.Groups) > 0 {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, smallFile), small.Draw(), 0o644))
	}
	return err
}

const tablesHead = `# Tables of the benchmarks

"make bench BENCH=-save=docs/results" has written this file. [bench.md](../bench.md) says what the figures mean.

`
