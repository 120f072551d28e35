package rules

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestUsual runs the usual rules together: no rule may find anything in the code of another.
func TestUsual(t *testing.T) { test(t, Usual, Usual, "odd") }

// TestOptional runs each optional rule beside the usual ones.
func TestOptional(t *testing.T) {
	for _, rule := range Optional {
		t.Run(rule.Name, func(t *testing.T) { test(t, []*analysis.Analyzer{rule}, append(slices.Clone(Usual), rule)) })
	}
}

// test runs rules on the packages of some of them. Each of those must find something.
func test(t *testing.T, own, rules []*analysis.Analyzer, packages ...string) {
	var mu sync.Mutex
	found := make(map[string]bool)
	together := &analysis.Analyzer{
		Name:     "together",
		Doc:      "run several rules",
		Requires: rules[0].Requires,
		Run: func(p *analysis.Pass) (any, error) {
			for _, rule := range rules {
				of := *p
				of.Report = func(d analysis.Diagnostic) {
					if folder, _, _ := strings.Cut(p.Pkg.Path(), "/"); folder != rule.Name {
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
	for _, rule := range own {
		packages = append(packages, rule.Name+"/...")
	}
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), together, packages...)
	for _, rule := range own {
		if !found[rule.Name] {
			t.Errorf("rule %s finds nothing in testdata/src/%s", rule.Name, rule.Name)
		}
	}
}
