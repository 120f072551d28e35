// Package plugin makes holdfastvet a linter of golangci-lint, by its module plugins. docs/vet.md
// shows the configuration.
package plugin

import (
	"fmt"
	"slices"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/rules"
)

func init() { register.Plugin("holdfastvet", New) }

type settings struct {
	Optional []string `json:"optional"`
}

// New returns the linter, with the usual rules, and the optional ones that the settings name.
func New(raw any) (register.LinterPlugin, error) {
	l := linter{slices.Clone(rules.Usual)}
	if raw == nil {
		return l, nil
	}
	s, err := register.DecodeSettings[settings](raw)
	if err != nil {
		return nil, fmt.Errorf("settings of holdfastvet: %w", err)
	}
	for _, name := range s.Optional {
		i := slices.IndexFunc(rules.Optional, func(rule *analysis.Analyzer) bool { return rule.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("settings of holdfastvet: %q is no optional rule: docs/vet.md lists the optional rules", name)
		}
		l.rules = append(l.rules, rules.Optional[i])
	}
	return l, nil
}

type linter struct{ rules []*analysis.Analyzer }

var _ register.LinterPlugin = linter{}

// BuildAnalyzers returns the rules.
func (l linter) BuildAnalyzers() ([]*analysis.Analyzer, error) { return l.rules, nil }

// GetLoadMode returns the mode with types, which every rule needs.
func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
