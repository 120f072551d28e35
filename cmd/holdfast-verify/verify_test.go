package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// No flag that takes text may be empty.
func TestNames(t *testing.T) {
	names := names()
	newCall().set.VisitAll(func(f *pflag.Flag) {
		if (f.Value.Type() == "string") != (names[f.Name] != "") {
			t.Errorf("--%s, a %s, should have: %q", f.Name, f.Value.Type(), names[f.Name])
		}
	})
}

// The manual tells of every flag.
func TestDocsFlags(t *testing.T) {
	manual, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	newCall().set.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !strings.Contains(string(manual), "--"+f.Name) {
			t.Errorf("docs/cli.md does not mention --%s of %s", f.Name, name)
		}
	})
}

// A wrong call is refused before anything is done.
func TestRefusals(t *testing.T) {
	for args, want := range map[string]string{
		"--kind padlock":                      `there is no kind "padlock": known are exclusive,try`,
		"--nemesis fire":                      `there is no nemesis "fire": known are kill,pause`,
		"--workers 1":                         "workers is 1; it must be from 2 to 32; see holdfast verify --help",
		"--workers many":                      "--workers",
		"--start redis:4":                     `there is no "redis:4" to start`,
		"--start abacus":                      `there is no "abacus" to start`,
		"--store abacus://":                   `no store for scheme "abacus"`,
		"--start=":                            "--start is empty: name one of file, sqlite",
		"--nemesis partition":                 "partition cannot befall file",
		"--beside no-such-program":            `beside is "no-such-program"; it must be the program holdfast-verify of another release`,
		"--start file surplus":                `got "surplus", but there is nothing to name`,
		"--for 1s --ttl 1m --nemesis kill":    "no kill fits into a run of 1s",
		"--start redis --store redis://there": "leave out one",
	} {
		err := run(t.Context(), strings.Fields(args))
		var exit *cli.Exit
		if !errors.As(err, &exit) || exit.Code != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// The exit code says what verify has found.
func TestExits(t *testing.T) {
	for want, err := range map[int]error{
		cli.ExitUnproved:    fmt.Errorf("%w: too few locks", verify.ErrUnproved),
		cli.ExitUnreachable: verify.ErrStore,
		cli.ExitUsage:       verify.ErrEngine,
		cli.ExitFailed:      verify.ErrUngranted,
	} {
		var exit *cli.Exit
		if !errors.As(exitOf(err), &exit) || exit.Code != want {
			t.Errorf("%v ends with %v, want %d", err, exit, want)
		}
	}
}
