package holdfast_test

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// skips are the files with a skip that TestTreeSkips cannot judge, and what decides there.
var skips = map[string]string{
	"bench/internal/stores/cost_test.go": "the flag -costs",
	"internal/cli/json_test.go":          "the input of a fuzz test",
	"internal/release/rehearsal_test.go": "the flag of make rehearsal",
	"internal/sim/replay/main_test.go":   "the release of Go",
	"mssqllock/tls_test.go":              "the server of HOLDFAST_TEST_SQLSERVER",
}

// TestTreeSkips wants nothing but -short, the system and a variable to decide that a test is
// skipped. Nobody sees a test that is left out in CI. A test that lacks something calls a function
// of internal/servers, which fails there; on a slow machine, a test calls internal/unproved.
func TestTreeSkips(t *testing.T) {
	chosen := regexp.MustCompile(`testing\.Short\(\)|runtime\.GOOS|os\.Getenv\(`)
	seen := make(map[string]bool)
	for _, s := range goFiles(t) {
		if !s.test() {
			continue
		}
		text := func(n ast.Node) []byte {
			return s.text[s.fset.Position(n.Pos()).Offset:s.fset.Position(n.End()).Offset]
		}
		ast.PreorderStack(s.file, nil, func(n ast.Node, stack []ast.Node) bool {
			if !skipping(n) || slices.ContainsFunc(stack, func(n ast.Node) bool {
				condition, ok := n.(*ast.IfStmt)
				return ok && chosen.Match(text(condition.Cond))
			}) {
				return true
			}
			seen[s.path] = true
			if skips[s.path] == "" {
				t.Errorf("%s:%d: what decides that the test is skipped? Call a function of internal/servers, such as Lacking", s.path, s.line(n))
			}
			return true
		})
	}
	for name := range skips {
		if !seen[name] {
			t.Errorf("%s skips no test: remove it from the list", name)
		}
	}
}

// skipping reports whether a node is a call that skips a test.
func skipping(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, f.Sel.Name) {
		return false
	}
	from, ok := f.X.(*ast.Ident)
	return !ok || from.Name != "unproved"
}
