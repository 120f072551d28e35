// Command bench measures Holdfast beside what people use instead, on real servers
// that it starts. The sides of a store take turns within one run, so that a busy
// machine slows all of them. It prints tables in Markdown, draws a picture of them,
// and says where that is.
//
//	go run ./ext/bench -run redis/ -short
//
// docs/bench.md says what the tables mean. It is a module of its own, so that the
// others do not depend on what they are compared with, and lies in ext, whose
// servers it starts: Go lets only what is below ext import them.
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
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/ext/bench/internal/worker"
)

func main() {
	worked, err := worker.Serve()
	if !worked {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		err = execute(ctx, os.Args[1:], os.Stdout)
	}
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	match := flags.String("run", "", "run only what matches this `regexp`, of the form store/bench")
	brief := flags.Bool("short", false, "take five minutes, for a first impression")
	list := flags.Bool("list", false, "list what there is")
	save := flags.String("save", "", "write the tables and a picture of them into this `folder`, too; those of a part replace none")
	seed := flags.Uint64("seed", 0, "shuffle the order of the sides with this `number`, in place of a random one")
	locks := flags.Int("held", 0, "hold so many `locks`, in place of 10,000, or of 500 with -short")
	if flags.Parse(args) != nil {
		return flag.ErrHelp // it has said what is wrong
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: -run chooses what to run", flags.Arg(0))
	}
	if *locks < 0 {
		return fmt.Errorf("-held %d: want a number of locks", *locks)
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

// show runs all, and leaves the picture where it is in nobody's way. There is none of
// benches that it does not show.
func (p plan) show(ctx context.Context, out io.Writer) error {
	if err := p.runAll(ctx, out); err != nil || len(p.picture.Groups) == 0 {
		return err
	}
	file, err := os.CreateTemp("", "holdfast-bench-*.svg")
	if err != nil {
		return err
	}
	_, err = file.Write(p.picture.Draw())
	fmt.Fprintf(out, "\nPicture: %s\n", file.Name())
	return errors.Join(err, file.Close())
}

// save runs all, and writes what comes out into a folder as well. A part replaces
// nothing there, since it may stand where others read the whole.
func (p plan) save(ctx context.Context, folder string, part bool, out io.Writer) error {
	if _, err := os.Stat(folder); err != nil { // said now, and not after all the work
		return fmt.Errorf("-save: %w", err)
	}
	tables, picture := filepath.Join(folder, "bench-tables.md"), filepath.Join(folder, "bench.svg")
	for _, file := range []string{tables, picture} {
		if _, err := os.Stat(file); part && err == nil {
			return fmt.Errorf("-save: %s is there, and -run, -short and -held make only a part: save it into another folder", file)
		}
	}
	var text bytes.Buffer
	text.WriteString(tablesHead)
	if err := p.runAll(ctx, io.MultiWriter(out, &text)); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(tables, text.Bytes(), 0o644), os.WriteFile(picture, p.picture.Draw(), 0o644))
}

const tablesHead = `# Tables of the benchmarks

"make bench BENCH=-save=docs" has written this file. [bench.md](bench.md) says what the figures mean.

`
