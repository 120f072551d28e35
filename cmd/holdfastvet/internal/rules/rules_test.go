package rules

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// every runs all rules: no rule may find anything in the good code of another.
var every = &analysis.Analyzer{
	Name:     "every",
	Doc:      "run all rules",
	Requires: All[0].Requires,
	Run: func(p *analysis.Pass) (any, error) {
		for _, rule := range All {
			if _, err := rule.Run(p); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
}

func TestRules(t *testing.T) {
	var packages []string
	for _, rule := range All {
		packages = append(packages, rule.Name+"/...")
	}
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), every, packages...)
}
