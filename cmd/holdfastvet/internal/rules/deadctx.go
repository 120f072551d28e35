package rules

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// DeadContext reports a deferred release with a context that may have ended.
var DeadContext = rule("deadctx", `
report a deferred release with the context of the work

If the caller cancels or the deadline passes, the work ends, and the release fails, because its
context has ended, too. The key stays locked for the rest of the TTL. An advisory lock stays held
as long as its connection lives, even in a pool.

Bad:

	lock, err := client.Obtain(ctx, key, time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)

Good:

	lock, err := client.Obtain(ctx, key, time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
`, deadContext)

func deadContext(p *pass) {
	for _, c := range p.found.Calls {
		if c.Does != locks.Release || !c.Deferred || c.Context == nil || !p.mayEnd(c, c.Context) {
			continue
		}
		var fixes []analysis.SuggestedFix
		if c.Quick {
			fixes = []analysis.SuggestedFix{{
				Message: "release although the context has ended",
				TextEdits: []analysis.TextEdit{
					{Pos: c.Context.Pos(), End: c.Context.Pos(), NewText: []byte("context.WithoutCancel(")},
					{Pos: c.Context.End(), End: c.Context.End(), NewText: []byte(")")},
				},
			}}
		}
		p.report(c.Expr, fixes, "the release fails if %s has ended: use context.WithoutCancel, with a timeout of its own",
			types.ExprString(c.Context))
	}
}

// mayEnd reports whether a context of a deferred call may have ended when the call begins.
func (p *pass) mayEnd(c *locks.Call, ctx ast.Expr) bool {
	switch e := ast.Unparen(ctx).(type) {
	case *ast.CallExpr:
		return p.derivedMayEnd(c, e, false)
	case *ast.Ident:
		v, ok := p.TypesInfo.ObjectOf(e).(*types.Var)
		if !ok || v.IsField() || v.Parent() == p.Pkg.Scope() {
			return false
		}
		return p.variableMayEnd(c, v)
	}
	return false
}

// variableMayEnd follows a variable to its first value.
func (p *pass) variableMayEnd(c *locks.Call, v *types.Var) bool {
	for i := len(c.Stack) - 1; i >= 0; i-- {
		fn, block := signature(c.Stack[i]), body(c.Stack[i])
		if fn == nil {
			continue
		}
		if contains(fn.Params, at(v.Pos())) {
			return !deferredLit(c.Stack[:i+1])
		}
		if !contains(block, at(v.Pos())) {
			continue
		}
		late := deferredLit(c.Stack[:i+1]) // made by the deferred function itself
		values := p.assigned(block, v)
		return len(values) > 0 && !slices.ContainsFunc(values, func(value ast.Expr) bool {
			call, ok := ast.Unparen(value).(*ast.CallExpr)
			if !ok {
				return !p.mayEnd(c, value)
			}
			return !p.derivedMayEnd(c, call, late)
		})
	}
	return false
}

// derivedMayEnd judges a call that makes a context.
func (p *pass) derivedMayEnd(c *locks.Call, call *ast.CallExpr, late bool) bool {
	fn := locks.Callee(p.TypesInfo, call)
	if fn == nil {
		return false
	}
	parent := func() bool { return len(call.Args) > 0 && p.mayEnd(c, call.Args[0]) }
	switch fn.FullName() {
	case "context.WithCancel", "context.WithTimeout", "context.WithDeadline", "os/signal.NotifyContext",
		"context.WithCancelCause", "context.WithTimeoutCause", "context.WithDeadlineCause":
		return !late || parent()
	case "context.WithValue":
		return parent()
	case "(*net/http.Request).Context":
		return true
	}
	return false
}

// assigned returns the values that a variable gets, except values made of the variable.
func (p *pass) assigned(around ast.Node, v *types.Var) (values []ast.Expr) {
	ast.Inspect(around, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range assign.Lhs {
			id, ok := left.(*ast.Ident)
			if !ok || p.TypesInfo.ObjectOf(id) != types.Object(v) {
				continue
			}
			value := assign.Rhs[min(i, len(assign.Rhs)-1)]
			if !p.uses(value, v) {
				values = append(values, value)
			}
		}
		return true
	})
	return values
}

// uses reports whether a node names a variable.
func (p *pass) uses(n ast.Node, v *types.Var) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && p.TypesInfo.Uses[id] == types.Object(v)
		return !found
	})
	return found
}
