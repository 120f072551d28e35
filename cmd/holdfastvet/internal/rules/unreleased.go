package rules

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// Unreleased reports a return that forgets the release of a lock.
var Unreleased = rule("unreleased", `
report a return that forgets the release of a lock

The function releases the lock at its end, and an early return, or the next iteration of a loop,
does not. The key stays locked for the rest of the TTL, or as long as the session lives. A return
for which the lock was never acquired is no misuse, nor is a lock that another function receives.

Bad:

	lock, err := client.Obtain(ctx, key, time.Minute, nil)
	if err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		return err
	}
	return lock.Release(context.WithoutCancel(ctx))

Good:

	lock, err := client.Obtain(ctx, key, time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return work(ctx)
`, unreleased)

func unreleased(p *pass) {
	for _, c := range p.found.Calls {
		if c.Does != locks.Acquire || c.Lock == nil || c.Deferred || !p.owns(c) {
			continue
		}
		releases := p.found.Others(c, locks.Release)
		if !slices.ContainsFunc(releases, func(r *locks.Call) bool { return !conditional(r, c) }) {
			continue
		}
		again := p.found.Others(c, locks.Acquire)
		found := p.search(c, false, func(n ast.Node) verdict {
			around := func(other *locks.Call) bool { return contains(n, other.Expr) }
			_, returns := n.(*ast.ReturnStmt)
			switch {
			case slices.ContainsFunc(releases, around) || slices.ContainsFunc(again, around):
				return leave
			case contains(n, c.Expr) && c.Function.Lock == locks.Receiver:
				return leave
			case contains(n, c.Expr) || returns:
				return hit
			}
			return goOn
		})
		switch {
		case found == nil:
		case contains(found, c.Expr):
			p.report(c.Expr, nil, "the loop comes back with the lock %q held: release the lock in every iteration", c.Lock.Name())
		default:
			p.report(found, nil, "this return leaves the lock %q held: defer the release after %s, line %d",
				c.Lock.Name(), c.Name(), p.Fset.Position(c.Expr.Pos()).Line)
		}
	}
}

// owns reports whether the lock is a variable of the function of the call, and stays in the
// function: every use is the receiver of a method, a comparison, or a call of the table.
func (p *pass) owns(c *locks.Call) bool {
	body := body(c.Func)
	if body == nil || c.Lock.IsField() || !contains(body, at(c.Lock.Pos())) {
		return false
	}
	stays := true
	stack := []ast.Node{}
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if id, ok := n.(*ast.Ident); ok && p.TypesInfo.Uses[id] == types.Object(c.Lock) {
			stays = stays && p.harmless(c, stack, id)
		}
		stack = append(stack, n)
		return true
	})
	return stays
}

// harmless reports whether a use of a lock keeps the lock in its function.
func (p *pass) harmless(c *locks.Call, stack []ast.Node, id *ast.Ident) bool {
	for i, n := range stack {
		if _, ok := n.(*ast.FuncLit); ok && !locks.Deferred(stack[:i+1]) {
			return false
		}
	}
	known := func(call *ast.CallExpr) bool {
		return slices.ContainsFunc(p.found.Calls, func(other *locks.Call) bool { return other.Expr == call })
	}
	switch up := stack[len(stack)-1].(type) {
	case *ast.SelectorExpr: // lock.Release, but no method value
		if len(stack) < 2 {
			return false
		}
		call, ok := stack[len(stack)-2].(*ast.CallExpr)
		return ok && call.Fun == up
	case *ast.CallExpr:
		return known(up)
	case *ast.BinaryExpr:
		return true
	case *ast.AssignStmt:
		return slices.Contains(up.Lhs, ast.Expr(id))
	}
	return false
}
