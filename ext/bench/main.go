// Command bench measures Holdfast beside what people use instead, on real servers
// that it starts. The sides of a store take turns within one run, so that a busy
// machine slows all of them. It prints tables in Markdown, and draws a picture of
// them.
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
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/ext/bench/internal/worker"
)

func main() {
	worked, err := worker.Serve()
	if !worked {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	brief := flags.Bool("short", false, "take three minutes, for a first impression")
	list := flags.Bool("list", false, "list what there is")
	save := flags.String("save", "", "write the tables and a picture of them into this `folder`, too")
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
	p, err := newPlan(*match, s)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *list {
		fmt.Fprintln(out, strings.Join(p.names(), "\n"))
		return nil
	}
	if *save == "" {
		return p.runAll(ctx, out)
	}
	if _, err := os.Stat(*save); err != nil { // said now, and not after all the work
		return fmt.Errorf("-save: %w", err)
	}
	var tables bytes.Buffer
	tables.WriteString(tablesHead)
	if err := p.runAll(ctx, io.MultiWriter(out, &tables)); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(*save, "bench-tables.md"), tables.Bytes(), 0o644),
		os.WriteFile(filepath.Join(*save, "bench.svg"), p.picture.Draw(), 0o644))
}

const tablesHead = `# Tables of the benchmarks

"make bench" has written this file. [bench.md](bench.md) says what the figures mean.

`
