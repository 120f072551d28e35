// Package plugin makes holdfastvet a linter of golangci-lint, by its module plugins. docs/vet.md
// shows the configuration.
package plugin

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/rules"
)

func init() { register.Plugin("holdfastvet", New) }

// New returns the linter, with every rule. There are no settings: golangci-lint itself can
// exclude findings.
func New(any) (register.LinterPlugin, error) { return linter{}, nil }

type linter struct{}

var _ register.LinterPlugin = linter{}

// BuildAnalyzers returns the rules.
func (linter) BuildAnalyzers() ([]*analysis.Analyzer, error) { return rules.All, nil }

// GetLoadMode returns the mode with types, which every rule needs.
func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
