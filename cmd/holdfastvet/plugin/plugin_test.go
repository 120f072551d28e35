package plugin

import (
	"slices"
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/rules"
)

// TestPlugin gets the linter as golangci-lint does: by its name, with the settings as YAML has
// them.
func TestPlugin(t *testing.T) {
	optional := rules.Optional[0]
	for _, test := range []struct {
		name     string
		settings any
		want     []*analysis.Analyzer
	}{
		{"none", nil, rules.Usual},
		{"optional", map[string]any{"optional": []any{optional.Name}}, append(slices.Clone(rules.Usual), optional)},
	} {
		t.Run(test.name, func(t *testing.T) {
			linter := plugin(t, test.settings)
			got, err := linter.BuildAnalyzers()
			if err != nil {
				t.Fatal(err)
			}
			if err := analysis.Validate(got); err != nil {
				t.Error(err)
			}
			if !slices.Equal(got, test.want) || linter.GetLoadMode() != register.LoadModeTypesInfo {
				t.Errorf("rules %v, mode %s: want %v, with types", got, linter.GetLoadMode(), test.want)
			}
		})
	}
}

func TestUnknownSettings(t *testing.T) {
	for want, settings := range map[string]any{
		`"commit" is no optional rule`: map[string]any{"optional": []any{"commit"}},
		`unknown field "rules"`:        map[string]any{"rules": []any{}},
	} {
		create, err := register.GetPlugin("holdfastvet")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := create(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("settings %v: %v, want an error with %s", settings, err, want)
		}
	}
}

func plugin(t *testing.T, settings any) register.LinterPlugin {
	t.Helper()
	create, err := register.GetPlugin("holdfastvet")
	if err != nil {
		t.Fatal(err)
	}
	linter, err := create(settings)
	if err != nil {
		t.Fatal(err)
	}
	return linter
}
