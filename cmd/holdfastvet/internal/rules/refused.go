package rules

import (
	"go/ast"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// Refused reports work that goes on although the lock was refused.
var Refused = rule("refused", `
report work that goes on although the lock was refused

The error or the row that says that another process holds the lock is dropped, or only logged. The
function then works, and releases, as if the lock was held.

Bad:

	if err := mutex.Lock(); err != nil {
		log.Print(err)
	}
	defer mutex.Unlock()
	return work(ctx)

Good:

	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	return work(ctx)
`, refused)

func refused(p *pass) {
	for _, c := range p.found.Calls {
		switch {
		case c.Does != locks.Acquire:
		case c.SQL != nil:
			if c.SQL.Try && c.SQL.NoRow {
				p.report(c.Expr, nil, "%s answers with a row whether the lock was acquired, and %s drops the row: query and scan the row",
					c.Name(), method(c.Expr))
			}
		case dropsError(c):
			p.report(c.Expr, nil, "the error of %s is dropped: without the lock the work goes on, too", c.Name())
		default:
			p.carriesOn(c)
		}
	}
}

// method returns the name of the method in a call.
func method(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return "the call"
}

// dropsError reports whether nothing receives the error of a call.
func dropsError(c *locks.Call) bool {
	switch up := c.Stack[len(c.Stack)-2].(type) {
	case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
		return true
	case *ast.AssignStmt:
		return len(up.Rhs) == 1 && blank(up.Lhs[len(up.Lhs)-1])
	case *ast.ValueSpec:
		return len(up.Values) == 1 && blank(up.Names[len(up.Names)-1])
	}
	return false
}

func blank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// carriesOn reports a path from the refusal to the release.
func (p *pass) carriesOn(c *locks.Call) {
	if c.Lock == nil {
		return
	}
	releases := slices.DeleteFunc(p.found.Others(c, locks.Release), func(r *locks.Call) bool {
		return conditional(r, c) || r.Expr.Pos() < c.Expr.Pos()
	})
	again := p.found.Others(c, locks.Acquire)
	found := p.search(c, true, func(n ast.Node) verdict {
		around := func(other *locks.Call) bool { return contains(n, other.Expr) }
		switch {
		case contains(n, c.Expr) || slices.ContainsFunc(again, around):
			return leave
		case slices.ContainsFunc(releases, around):
			return hit
		}
		return goOn
	})
	if found != nil {
		p.report(c.Expr, nil, "if %s fails, the function goes on to the release in line %d, as if it held the lock: return the error",
			c.Name(), p.Fset.Position(found.Pos()).Line)
	}
}
