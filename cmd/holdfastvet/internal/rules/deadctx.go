package rules

import (
	"go/ast"
	"go/token"
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
		if c.Does != locks.Release || !c.Deferred || c.Context == nil || !p.ended(c) {
			continue
		}
		var fixes []analysis.SuggestedFix
		if c.Quick && p.names(c.Context.Pos(), "context") {
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

// ended reports whether the context of a deferred call may have ended when the call begins.
func (p *pass) ended(c *locks.Call) bool {
	o := &origin{p, c, make(map[*types.Var]bool)}
	return o.mayEnd(c.Context)
}

// An origin follows a context to the call that made the context.
type origin struct {
	*pass
	call *locks.Call
	seen map[*types.Var]bool // two variables may have values of each other
}

func (o *origin) mayEnd(ctx ast.Expr) bool {
	switch e := ast.Unparen(ctx).(type) {
	case *ast.CallExpr:
		return o.derived(e, false)
	case *ast.Ident:
		v, ok := o.TypesInfo.ObjectOf(e).(*types.Var)
		if !ok || v.IsField() || v.Parent() == o.Pkg.Scope() || o.seen[v] {
			return false
		}
		o.seen[v] = true
		return o.variable(v)
	}
	return false
}

// variable follows a variable to its values. Each of them must be a context that may end.
func (o *origin) variable(v *types.Var) bool {
	for i, n := range slices.Backward(o.call.Stack) {
		fn := signature(n)
		if fn == nil {
			continue
		}
		if contains(fn.Params, at(v.Pos())) {
			return !locks.Deferred(o.call.Stack[:i+1])
		}
		if !contains(body(n), at(v.Pos())) {
			continue
		}
		late := locks.Deferred(o.call.Stack[:i+1]) // made by the deferred function itself
		values := o.assigned(body(n), v)
		return len(values) > 0 && !slices.ContainsFunc(values, func(value ast.Expr) bool {
			if call, ok := ast.Unparen(value).(*ast.CallExpr); ok {
				return !o.derived(call, late)
			}
			return !o.mayEnd(value)
		})
	}
	return false
}

// derived judges a call that makes a context.
func (o *origin) derived(call *ast.CallExpr, late bool) bool {
	parent := func() bool { return len(call.Args) > 0 && o.mayEnd(call.Args[0]) }
	switch name(o.TypesInfo, call) {
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

// names reports whether a name stands for the package with that path at a position.
func (p *pass) names(pos token.Pos, name string) bool {
	_, found := p.Pkg.Scope().Innermost(pos).LookupParent(name, pos)
	imported, ok := found.(*types.PkgName)
	return ok && imported.Imported().Path() == name
}

// assigned returns the values that a variable gets, except values made of the variable.
func (p *pass) assigned(around ast.Node, v *types.Var) (values []ast.Expr) {
	assign := func(left ast.Expr, i int, right []ast.Expr) {
		id, ok := left.(*ast.Ident)
		if !ok || len(right) == 0 || p.TypesInfo.ObjectOf(id) != types.Object(v) {
			return
		}
		if value := right[min(i, len(right)-1)]; !p.uses(value, v) {
			values = append(values, value)
		}
	}
	ast.Inspect(around, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				assign(left, i, n.Rhs)
			}
		case *ast.ValueSpec:
			for i, left := range n.Names {
				assign(left, i, n.Values)
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
