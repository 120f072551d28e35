package rules

import (
	"go/ast"
	"go/types"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// KeptLock reports a lock in a field that nobody reads.
var KeptLock = rule("keptlock", `
report a lock in a field of a struct that no function reads

Nothing can release the lock, or look whether the lock is lost. If the library renews the lock, the
key stays locked as long as the process lives. A field that other packages can read is left alone.

Bad:

	type worker struct{ lock *redislock.Lock }

	func (w *worker) start(ctx context.Context) (err error) {
		w.lock, err = w.client.Obtain(ctx, "worker", time.Minute, nil)
		return err
	}

Good:

	type worker struct{ lock *redislock.Lock }

	func (w *worker) start(ctx context.Context) (err error) {
		w.lock, err = w.client.Obtain(ctx, "worker", time.Minute, nil)
		return err
	}

	func (w *worker) stop(ctx context.Context) error {
		return w.lock.Release(ctx)
	}
`, keptLock)

func keptLock(p *pass) {
	var acquired []*locks.Call
	for _, c := range p.found.Calls {
		if c.Does == locks.Acquire && c.Lock != nil && c.Function.Lock != locks.Receiver {
			acquired = append(acquired, c)
		}
	}
	if len(acquired) == 0 {
		return
	}
	read := p.fieldsRead()
	for _, c := range acquired {
		for _, field := range p.kept(c) {
			if !read[field] && !field.Exported() && field.Pkg() == p.Pkg {
				p.report(c.Expr, nil, "no function reads the field %q, so nothing can release the lock: add a method that does", field.Name())
			}
		}
	}
}

// kept returns the fields that receive an acquired lock.
func (p *pass) kept(c *locks.Call) (fields []*types.Var) {
	if c.Lock.IsField() {
		return []*types.Var{c.Lock}
	}
	ast.Inspect(body(c.Func), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if field := p.field(left); field != nil && len(n.Rhs) == len(n.Lhs) && p.isVariable(n.Rhs[i], c.Lock) {
					fields = append(fields, field)
				}
			}
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok && p.isVariable(n.Value, c.Lock) {
				if field, ok := p.TypesInfo.Uses[id].(*types.Var); ok && field.IsField() {
					fields = append(fields, field)
				}
			}
		}
		return true
	})
	return fields
}

func (p *pass) isVariable(e ast.Expr, v *types.Var) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && p.TypesInfo.Uses[id] == types.Object(v)
}

// field returns the field that a left side of an assignment names, or whose element it names.
func (p *pass) field(left ast.Expr) *types.Var {
	left = ast.Unparen(left)
	if index, ok := left.(*ast.IndexExpr); ok {
		left = ast.Unparen(index.X)
	}
	sel, ok := left.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	v, _ := p.TypesInfo.Uses[sel.Sel].(*types.Var)
	if v == nil || !v.IsField() {
		return nil
	}
	return v.Origin()
}

// fieldsRead returns the fields of which the package makes another use than an assignment, or
// a comparison with nil.
func (p *pass) fieldsRead() map[*types.Var]bool {
	written := make(map[*ast.Ident]bool)
	write := func(e ast.Expr) {
		e = ast.Unparen(e)
		if index, ok := e.(*ast.IndexExpr); ok {
			e = ast.Unparen(index.X)
		}
		if sel, ok := e.(*ast.SelectorExpr); ok {
			written[sel.Sel] = true
		}
	}
	kinds := []ast.Node{(*ast.AssignStmt)(nil), (*ast.KeyValueExpr)(nil), (*ast.BinaryExpr)(nil)}
	for n := range p.inspector().PreorderSeq(kinds...) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				write(left)
			}
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok {
				written[id] = true
			}
		case *ast.BinaryExpr:
			if p.TypesInfo.Types[n.Y].IsNil() {
				write(n.X)
			}
		}
	}
	read := make(map[*types.Var]bool)
	for id, object := range p.TypesInfo.Uses {
		if v, ok := object.(*types.Var); ok && v.IsField() && !written[id] {
			read[v.Origin()] = true
		}
	}
	return read
}
