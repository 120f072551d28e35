// Command arrows draws arrows from files of the engine to the files that they use, and from
// packages to their imports. The pictures stand in docs/design.md, and a test compares the
// pictures with the source:
//
//	go run ./internal/arrows -save=docs
//
// Without -save the command prints the arrows that run back up, with the used names. The order
// of the engine's files is the list of the package comment: a request goes down the list.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/internal/publish"
)

// drawings are the pictures, by file name.
var drawings = map[string]func(root string) (*graph, error){
	"engine.svg":   engineFiles,
	"packages.svg": packages,
}

func main() { publish.Main("arrows", execute) }

func execute(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("arrows", flag.ContinueOnError)
	folder := flags.String("save", "", "save the pictures in this `folder`")
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	for name, draw := range drawings {
		g, err := draw(".")
		if err != nil {
			return err
		}
		if *folder != "" {
			if err := os.WriteFile(filepath.Join(*folder, name), g.svg(), 0o644); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out, "%s\n", g.title())
		for _, a := range g.arrows {
			if a.up() {
				fmt.Fprintf(out, "\t%s -> %s: %s\n", g.nodes[a.from], g.nodes[a.to], strings.Join(a.names, ", "))
			}
		}
	}
	return nil
}
