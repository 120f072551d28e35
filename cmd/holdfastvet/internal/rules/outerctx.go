package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// OuterContext reports work under a lock with a context that does not end with the lock.
var OuterContext = rule("outerctx", `
report work under a lock with a context that does not end with the lock

The library hands the work a context that ends when the lock is lost. Work with the context from
outside, or with context.Background(), goes on after the loss, beside the next holder. A leader that
exits the process or cancels a context in OnStoppedLeading is no misuse, nor is work that ends the
election by itself.

Bad:

	err := locks.Do(ctx, key, func(context.Context) error {
		return work(ctx)
	})

Good:

	err := locks.Do(ctx, key, func(ctx context.Context) error {
		return work(ctx)
	})
`, outerContext)

func outerContext(p *pass) {
	reported := make(map[ast.Expr]bool) // work may stand in other work
	for _, w := range p.found.Works {
		if w.Stopped == nil || !p.stops(w.Stopped) && !p.stops(w.Lit) {
			p.outside(w.Lit, reported)
		}
	}
	for _, c := range p.found.Calls {
		if c.Does == locks.Acquire && c.Function.Lock == locks.Cancel {
			p.scope(c)
		}
	}
}

// outside reports the calls in the work of a lock that take a context from outside.
func (p *pass) outside(lit *ast.FuncLit, reported map[ast.Expr]bool) {
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			return false // what cleans up must not end with the lock
		case *ast.CallExpr:
			if p.logs(n) {
				return true
			}
			for _, arg := range n.Args {
				if (p.from(arg, lit) || p.endless(n, arg)) && !reported[arg] {
					reported[arg] = true
					p.report(arg, nil, "%s does not end when the lock is lost: pass the context of the function", types.ExprString(arg))
				}
			}
		}
		return true
	})
}

// from reports whether an expression is a variable with a context from outside a function
// literal.
func (p *pass) from(e ast.Expr, lit *ast.FuncLit) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := p.TypesInfo.Uses[id].(*types.Var)
	return ok && locks.IsContext(v.Type()) && !contains(lit, at(v.Pos())) && !p.copied(lit, v)
}

// endless reports whether a call takes a context that never ends, and does not derive another.
func (p *pass) endless(call *ast.CallExpr, arg ast.Expr) bool {
	made, ok := ast.Unparen(arg).(*ast.CallExpr)
	return ok && len(made.Args) == 0 && p.ofContext(made) && !p.ofContext(call)
}

// ofContext reports whether a function of package context is called.
func (p *pass) ofContext(call *ast.CallExpr) bool {
	fn := locks.Callee(p.TypesInfo, call)
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "context" && fn.Signature().Recv() == nil
}

// copied reports whether a variable is a copy of a context under a second name, as in
// "caller := ctx": such a copy is meant.
func (p *pass) copied(lit *ast.FuncLit, v *types.Var) bool {
	for _, file := range p.Files {
		if !contains(file, lit) {
			continue
		}
		for _, value := range p.assigned(file, v) {
			if _, ok := ast.Unparen(value).(*ast.Ident); ok {
				return true
			}
		}
	}
	return false
}

// logs reports whether a call only notes its context, or leaves its end aside.
func (p *pass) logs(call *ast.CallExpr) bool {
	fn := locks.Callee(p.TypesInfo, call)
	if fn == nil {
		return false
	}
	path := ""
	if fn.Pkg() != nil {
		path = fn.Pkg().Path()
	}
	return strings.Contains(strings.ToLower(path[strings.LastIndex(path, "/")+1:]), "log") ||
		strings.HasSuffix(fn.Name(), "FromContext") || slices.Contains([]string{"context.Cause", "context.WithoutCancel"}, fn.FullName())
}

// stops reports whether a callback of an election ends the process, or cancels a context. An
// unknown function counts.
func (p *pass) stops(stopped ast.Expr) (found bool) {
	lit, ok := ast.Unparen(stopped).(*ast.FuncLit)
	if !ok {
		return true
	}
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			found = found || ends(call) || p.cancels(call)
		}
		return !found
	})
	return found
}

// cancels reports whether a call cancels a context, or closes a channel.
func (p *pass) cancels(call *ast.CallExpr) bool {
	name := strings.ToLower(types.ExprString(call.Fun))
	return locks.TypeName(p.TypesInfo.TypeOf(call.Fun)) == "context.CancelFunc" || name == "close" ||
		strings.Contains(name, "cancel") || strings.Contains(name, "stop") || strings.Contains(name, "shutdown")
}

// scope reports a call that drops the context that ends with the lock.
func (p *pass) scope(c *locks.Call) {
	var first ast.Expr
	switch up := c.Stack[len(c.Stack)-2].(type) {
	case *ast.AssignStmt:
		first = up.Lhs[0]
	case *ast.ValueSpec:
		first = up.Names[0]
	}
	if first != nil && blank(first) {
		p.report(first, nil, "the context of %s ends when the lock is lost, and is dropped: pass the context to the work", c.Name())
	}
}
