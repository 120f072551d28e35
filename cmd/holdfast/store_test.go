package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestInitLine: the command that an error names reaches the store of the error, without its secrets.
func TestInitLine(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"postgres://app:secret@db/app?mode=session&sslmode=require":               "holdfast init --store 'NAME?mode=session'",
		"mysql://app:secret@db/app":                                               "holdfast init --store 'NAME'",
		"sqlserver://app:secret@db?database=app&encrypt=true":                     "holdfast init --store 'NAME?database=app'",
		"sqlserver://app:secret@db/INSTANCE?Database=app&table=jobs.locks&conns=": "holdfast init --store 'NAME?Database=app&table=jobs.locks'",
	} {
		s, root := &site{}, &cobra.Command{}
		s.register(root)
		if err := root.PersistentFlags().Set("store", at); err != nil {
			t.Fatal(err)
		}
		if got := s.initLine("NAME"); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
