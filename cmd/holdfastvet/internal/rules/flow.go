package rules

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/cfg"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// A verdict is the judgement of a node on a path.
type verdict int

const (
	goOn  verdict = iota
	leave         // the path is right from here on
	hit           // the path is wrong
)

// A walk follows the paths that a function can take after a call. If the call acquires a
// lock, the walk takes only the branches that fit the outcome.
type walk struct {
	info    *types.Info
	call    *locks.Call
	refused bool // the outcome
	judge   func(ast.Node) verdict
	seen    map[step]bool
}

// A step is a block, and what the path to the block has shown.
type step struct {
	block *cfg.Block
	fresh bool // the variable of the error still has the error of the call
	shown bool // a condition has shown the outcome
}

// graph returns the control flow of the function of a call.
func (p *pass) graph(fn ast.Node) *cfg.CFG {
	graphs := p.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	switch fn := fn.(type) {
	case *ast.FuncDecl:
		return graphs.FuncDecl(fn)
	case *ast.FuncLit:
		return graphs.FuncLit(fn)
	}
	return nil
}

// search returns the first node on a path after the call that judge finds wrong, or nil. If
// refused, a path counts only after a condition has shown that the lock was refused.
func (p *pass) search(call *locks.Call, refused bool, judge func(ast.Node) verdict) ast.Node {
	graph := p.graph(call.Func)
	if graph == nil {
		return nil
	}
	w := &walk{p.TypesInfo, call, refused, judge, make(map[step]bool)}
	for _, block := range graph.Blocks {
		for i, n := range block.Nodes {
			if contains(n, call.Expr) {
				return w.from(step{block, call.Err != nil, !refused}, block.Nodes[i+1:])
			}
		}
	}
	return nil
}

// from follows the paths from the given nodes, the rest of a block.
func (w *walk) from(at step, nodes []ast.Node) ast.Node {
	for _, n := range nodes {
		if at.shown {
			switch w.judge(n) {
			case hit:
				return n
			case leave:
				return nil
			}
		}
		at.fresh = at.fresh && !w.assigns(n)
	}
	for i, next := range at.block.Succs {
		to := step{next, at.fresh, at.shown}
		if len(at.block.Succs) == 2 && len(at.block.Nodes) > 0 {
			fits, shows := w.branch(at, at.block.Nodes[len(at.block.Nodes)-1], i == 0)
			if !fits {
				continue
			}
			to.shown = to.shown || shows
		}
		if w.seen[to] {
			continue
		}
		w.seen[to] = true
		if n := w.from(to, next.Nodes); n != nil {
			return n
		}
	}
	return nil
}

// branch reports whether a branch fits the outcome of the call, and whether the branch shows
// the outcome.
func (w *walk) branch(at step, cond ast.Node, taken bool) (fits, shows bool) {
	if !at.fresh {
		return true, false
	}
	failed, known := w.failed(cond, taken)
	if !known {
		return true, false
	}
	return failed == w.refused, failed == w.refused
}

// failed reports whether a condition, if taken or not, shows that the call failed.
func (w *walk) failed(cond ast.Node, taken bool) (failed, known bool) {
	switch cond := cond.(type) {
	case *ast.ParenExpr:
		return w.failed(cond.X, taken)
	case *ast.CallExpr: // errors.Is(err, ErrNotObtained)
		if taken && len(cond.Args) > 0 && w.is(cond.Args[0], w.call.Err) {
			return true, true
		}
	case *ast.BinaryExpr:
		if cond.Op != token.EQL && cond.Op != token.NEQ {
			return false, false
		}
		equal := (cond.Op == token.EQL) == taken
		x, y := cond.X, cond.Y
		if w.info.Types[x].IsNil() {
			x, y = y, x
		}
		isNil := w.info.Types[y].IsNil()
		switch {
		case w.is(x, w.call.Err) && isNil:
			return !equal, true
		case w.is(x, w.call.Err) && equal: // err == ErrNotObtained
			return true, true
		case w.is(x, w.call.Lock) && isNil && w.call.Function.Lock == locks.Result:
			return equal, true
		}
	}
	return false, false
}

func (w *walk) is(e ast.Expr, v *types.Var) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && v != nil && w.info.ObjectOf(id) == v
}

// assigns reports whether a node gives the variable of the error a new value.
func (w *walk) assigns(n ast.Node) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, left := range assign.Lhs {
		if w.is(left, w.call.Err) {
			return true
		}
	}
	return false
}

// contains reports whether a node is around another node.
func contains(n, inner ast.Node) bool { return n.Pos() <= inner.Pos() && inner.End() <= n.End() }

// conditional reports whether a call stands in a branch that does not contain the other call:
// a variable that no walk can follow may decide on the branch.
func conditional(call, other *locks.Call) bool {
	for _, n := range call.Stack {
		switch n := n.(type) {
		case *ast.IfStmt:
			if contains(n.Body, call.Expr) && !contains(n.Body, other.Expr) {
				return true
			}
			if n.Else != nil && contains(n.Else, call.Expr) && !contains(n.Else, other.Expr) {
				return true
			}
		case *ast.CaseClause, *ast.CommClause:
			if !contains(n, other.Expr) {
				return true
			}
		}
	}
	return false
}
