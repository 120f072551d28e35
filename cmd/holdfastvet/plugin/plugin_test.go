package plugin

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"
)

// TestPlugin gets the linter as golangci-lint does: by its name.
func TestPlugin(t *testing.T) {
	create, err := register.GetPlugin("holdfastvet")
	if err != nil {
		t.Fatal(err)
	}
	linter, err := create(nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := linter.BuildAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	if err := analysis.Validate(rules); err != nil {
		t.Error(err)
	}
	if len(rules) == 0 || linter.GetLoadMode() != register.LoadModeTypesInfo {
		t.Errorf("%d rules, mode %s: want every rule, with types", len(rules), linter.GetLoadMode())
	}
}
