package holdfast_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// pauses are the files and folders of tests that pause in real time, and why nothing is judged by
// the length of the pause. A test that waits for an event uses servers.Until.
var pauses = map[string]string{
	"bench/internal/stores/cost_test.go": "counts what a while costs, with the flag -costs",
	"drivertest":                         "the contract waits for the TTLs that real servers count",
	"etcdlock/login_test.go":             "the server forgets a login that is not used",
	"filelock/process_test.go":           "the moment of a kill is random",
	"internal/starve/starve.go":          "the work of a holder",
	"memcachelock/scale_test.go":         "the work of a holder",
	"redislock/count_test.go":            "the work of a holder",
	"sqlitelock/bench_test.go":           "the work of a holder",
	"sqlitelock/journal_test.go":         "the work of a holder",
}

// TestTreePauses wants no new pause in real time. By the convention of the house, time.Sleep is a
// pause in the virtual time of a bubble. So the rule looks for a time.Sleep in folders without
// bubbles, and for a receive from time.After outside of a select.
func TestTreePauses(t *testing.T) {
	bubbles := make(map[string]bool)
	for _, s := range goFiles(t) {
		for _, i := range s.file.Imports {
			p := strings.Trim(i.Path.Value, `"`)
			if p == "testing/synctest" || strings.HasSuffix(p, "/holdfast/locktest") || strings.HasSuffix(p, "/internal/sim") {
				bubbles[s.dir()] = true
			}
		}
	}
	seen := make(map[string]bool)
	for _, s := range goFiles(t) {
		if !s.test() && !strings.HasSuffix(s.dir(), "test") && !slices.Contains([]string{"internal/servers", "internal/sim", "internal/starve"}, s.dir()) {
			continue
		}
		cases := make(map[ast.Node]bool) // of a select
		for n := range ast.Preorder(s.file) {
			if c, ok := n.(*ast.CommClause); ok {
				cases[c.Comm] = true
			}
			if cases[n] || !pausing(n, bubbles[s.dir()]) {
				continue
			}
			seen[s.path], seen[s.dir()] = true, true
			if pauses[s.path] == "" && pauses[s.dir()] == "" {
				t.Errorf("%s:%d: a pause in real time: wait for the event by servers.Until, or test in a bubble", s.path, s.line(n))
			}
		}
	}
	for name := range pauses {
		if !seen[name] {
			t.Errorf("%s pauses no more: remove it from the list", name)
		}
	}
}

// pausing reports whether a node is a pause in real time, if its folder has bubbles or not.
func pausing(n ast.Node, bubbles bool) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return !bubbles && calls(n, "Sleep")
	case *ast.ExprStmt:
		receive, ok := n.X.(*ast.UnaryExpr)
		return ok && receive.Op == token.ARROW && calls(receive.X, "After")
	}
	return false
}

// calls reports whether an expression is a call of a function of package time.
func calls(e ast.Expr, function string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != function {
		return false
	}
	from, ok := f.X.(*ast.Ident)
	return ok && from.Name == "time"
}
