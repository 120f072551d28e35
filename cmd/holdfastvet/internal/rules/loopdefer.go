package rules

import (
	"go/ast"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// LoopDefer reports a deferred release in a loop.
var LoopDefer = rule("loopdefer", `
report a deferred release in a loop

A deferred call runs when the function returns, not when the iteration ends. The function
holds the locks of all iterations, or waits for a lock of its own.

Bad:

	for _, key := range keys {
		lock, err := client.Obtain(ctx, key, time.Minute, nil)
		if err != nil {
			return err
		}
		defer lock.Release(context.WithoutCancel(ctx))
		if err := work(ctx); err != nil {
			return err
		}
	}

Good:

	for _, key := range keys {
		if err := workUnderLock(ctx, client, key); err != nil {
			return err
		}
	}
`, loopDefer)

func loopDefer(p *pass) {
	for _, c := range p.found.Calls {
		if c.Does != locks.Release || !c.Deferred {
			continue
		}
		if loop := loopAround(c); loop != nil && !leavesLoop(c) && p.acquiredIn(loop, c) {
			p.report(c.Expr, nil, "the release is deferred in a loop: the lock stays held until the function returns")
		}
	}
}

// loopAround returns the innermost loop around a deferred call, within the function.
func loopAround(c *locks.Call) (loop ast.Node) {
	for _, n := range c.Stack {
		switch n := n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			if n == c.Func {
				loop = nil
			}
		case *ast.ForStmt, *ast.RangeStmt:
			loop = n
		case *ast.DeferStmt:
			return loop
		}
	}
	return nil
}

// leavesLoop reports whether the statements after the deferred call end the loop.
func leavesLoop(c *locks.Call) bool {
	for i, n := range c.Stack {
		if _, ok := n.(*ast.DeferStmt); !ok || i == 0 {
			continue
		}
		var list []ast.Stmt
		switch up := c.Stack[i-1].(type) {
		case *ast.BlockStmt:
			list = up.List
		case *ast.CaseClause:
			list = up.Body
		case *ast.CommClause:
			list = up.Body
		default:
			return false
		}
		switch last := list[len(list)-1].(type) {
		case *ast.ReturnStmt:
			return true
		case *ast.BranchStmt:
			return last.Tok.String() != "continue"
		case *ast.ExprStmt:
			call, ok := last.X.(*ast.CallExpr)
			return ok && ends(call)
		}
		return false
	}
	return false
}

// acquiredIn reports whether the loop acquires the lock in every iteration.
func (p *pass) acquiredIn(loop ast.Node, c *locks.Call) bool {
	for _, other := range p.found.Others(c, locks.Acquire) {
		if contains(loop, other.Expr) {
			return true
		}
	}
	return false
}
