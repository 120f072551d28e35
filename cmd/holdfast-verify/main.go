// Command holdfast-verify tests a store with worker processes, and kills, stops and cuts
// off the processes. If this command is installed, "holdfast verify" runs it:
//
//	go install github.com/holdfast-go/holdfast/cmd/holdfast-verify@latest
//
// docs/cli.md is the manual.
package main

import (
	"context"
	"os"

	_ "github.com/holdfast-go/holdfast/all" // the stores that --store can name
	"github.com/holdfast-go/holdfast/internal/cli"
)

func main() {
	err := run(context.Background(), os.Args[1:])
	code := cli.Report(os.Stderr, err)
	cli.Obey(err)
	os.Exit(code)
}
