package rules

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestRules runs the usual rules, on all packages, and each optional rule on its own. No rule may
// find anything in the code of another, and each rule must find something in its own. All packages
// are loaded together, because the standard library behind them takes most of the time.
func TestRules(t *testing.T) {
	var mu sync.Mutex
	found := make(map[string]bool)
	together := &analysis.Analyzer{
		Name:     "together",
		Doc:      "run several rules",
		Requires: Usual[0].Requires,
		Run: func(p *analysis.Pass) (any, error) {
			folder, _, _ := strings.Cut(p.Pkg.Path(), "/")
			for _, rule := range All {
				if rule.Name != folder && slices.Contains(Optional, rule) {
					continue
				}
				of := *p
				of.Report = func(d analysis.Diagnostic) {
					if folder != rule.Name {
						d.Message = "rule " + rule.Name + ": " + d.Message
						t.Errorf("rule %s finds something in package %s", rule.Name, p.Pkg.Path())
					}
					mu.Lock()
					found[rule.Name] = true
					mu.Unlock()
					p.Report(d)
				}
				if _, err := rule.Run(&of); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
	packages := []string{"odd"}
	for _, rule := range All {
		packages = append(packages, rule.Name+"/...")
	}
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), together, packages...)
	for _, rule := range All {
		if !found[rule.Name] {
			t.Errorf("rule %s finds nothing in testdata/src/%s", rule.Name, rule.Name)
		}
	}
}
