package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// IdleFence reports a fencing token that never reaches a write.
var IdleFence = rule("idlefence", `
report a fencing token that is read and only logged

A fencing token protects data only where a write carries the token, and the store of the data
rejects an older one. A package that reads tokens only for its log has no protection.

Bad:

	lock, err := locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	log.Print("token ", lock.Fence())
	return write(ctx, data)

Good:

	lock, err := locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return writeFenced(ctx, data, lock.Fence())
`, idleFence)

func idleFence(p *pass) {
	var tokens []*locks.Call
	for _, c := range p.found.Calls {
		if c.Does == locks.Token {
			if !p.idle(c) {
				return
			}
			tokens = append(tokens, c)
		}
	}
	for _, c := range tokens {
		p.report(c.Expr, nil, "the fencing token reaches no write, so nothing rejects a write after the loss: pass the token to the write")
	}
}

// idle reports whether a token goes to a log, or nowhere.
func (p *pass) idle(c *locks.Call) bool {
	switch up := c.Stack[len(c.Stack)-2].(type) {
	case *ast.ExprStmt:
		return true
	case *ast.AssignStmt:
		i := slices.Index(up.Rhs, ast.Expr(c.Expr))
		return len(up.Lhs) == len(up.Rhs) && i >= 0 && p.idleVariable(c, up.Lhs[i])
	case *ast.ValueSpec:
		i := slices.Index(up.Values, ast.Expr(c.Expr))
		return len(up.Names) == len(up.Values) && i >= 0 && p.idleVariable(c, up.Names[i])
	}
	return p.noted(c.Stack)
}

// idleVariable reports whether each use of the variable with a token is a log.
func (p *pass) idleVariable(c *locks.Call, left ast.Expr) bool {
	id, ok := left.(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := p.TypesInfo.ObjectOf(id).(*types.Var)
	if !ok {
		return id.Name == "_"
	}
	if !contains(body(c.Func), at(v.Pos())) {
		return false
	}
	idle := true
	var stack []ast.Node
	ast.Inspect(body(c.Func), func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if use, ok := n.(*ast.Ident); ok && p.TypesInfo.Uses[use] == types.Object(v) {
			idle = idle && (p.noted(stack) || discarded(stack))
		}
		return true
	})
	return idle
}

// noted reports whether the last node of a stack is inside the argument of a call that logs or
// prints.
func (p *pass) noted(stack []ast.Node) bool {
	for _, n := range slices.Backward(stack[:len(stack)-1]) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if p.logs(n) || strings.HasPrefix(name(p.TypesInfo, n), "fmt.Print") {
				return true
			}
		case ast.Stmt:
			return false
		}
	}
	return false
}

// discarded reports whether the last node of a stack is assigned to the blank identifier.
func discarded(stack []ast.Node) bool {
	assign, ok := stack[len(stack)-2].(*ast.AssignStmt)
	return ok && len(assign.Lhs) == 1 && blank(assign.Lhs[0])
}
