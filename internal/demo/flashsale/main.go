// Command flashsale is "holdfast demo" with locks in files. The program links the standard
// library only, so that "make demo" compiles in seconds and downloads nothing. With
// -pause, flashsale also freezes a server in the middle of a sale.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	_ "github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/internal/demo"
)

func main() {
	c := demo.Default()
	flag.BoolVar(&c.Pause, "pause", false, "go on to freeze a server in the middle of a sale")
	flag.Parse()
	if err := run(c, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "flashsale:", err)
		os.Exit(1)
	}
}

// serve is the argument that makes this program one of the servers.
const serve = "serve"

func run(c demo.Config, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch {
	case len(args) == 1 && args[0] == serve:
		return demo.Serve(ctx, os.Stdin, os.Stdout)
	case len(args) > 0:
		return fmt.Errorf("got %q, but there is nothing to name: holdfast demo has more flags, such as --store", args)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	c.Command, c.Stderr = []string{program, serve}, os.Stderr
	report, err := demo.Run(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(report.Print(os.Stdout), report.Err())
}
