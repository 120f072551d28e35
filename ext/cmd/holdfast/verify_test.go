package main

import (
	"testing"

	"github.com/spf13/pflag"
)

// No flag that takes text may be empty.
func TestVerifyNames(t *testing.T) {
	names := verifyNames()
	verifyCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if (f.Value.Type() == "string") != (names[f.Name] != "") {
			t.Errorf("--%s, a %s, should have: %q", f.Name, f.Value.Type(), names[f.Name])
		}
	})
}
