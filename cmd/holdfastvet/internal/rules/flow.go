package rules

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

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
	tags    map[ast.Expr]ast.Expr // the tag of the switch of a case
	told    map[*types.Var]bool   // variables that may know the outcome
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
	w := &walk{p.TypesInfo, call, refused, judge, make(map[ast.Expr]ast.Expr), make(map[*types.Var]bool), make(map[step]bool)}
	w.prepare()
	for _, block := range graph.Blocks {
		for i, n := range block.Nodes {
			if block.Live && contains(n, call.Expr) {
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
// the outcome. No branch fits if a variable that may know the outcome decides.
func (w *walk) branch(at step, cond ast.Node, taken bool) (fits, shows bool) {
	expr, ok := cond.(ast.Expr)
	if !ok {
		return true, false
	}
	if tag := w.tags[expr]; tag != nil {
		expr = &ast.BinaryExpr{X: tag, Op: token.EQL, Y: expr}
	}
	switch w.failed(at, expr, taken) {
	case yes:
		return w.refused, w.refused
	case no:
		return !w.refused, !w.refused
	case perhaps:
		return false, false
	}
	return true, false
}

// An answer says whether a call failed.
type answer int

const (
	unasked answer = iota // the condition is about something else
	yes
	no
	perhaps
)

// failed tells what a condition, if taken or not, shows about the call.
func (w *walk) failed(at step, cond ast.Expr, taken bool) answer {
	switch cond := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if cond.Op == token.NOT {
			return w.failed(at, cond.X, !taken)
		}
	case *ast.CallExpr: // errors.Is(err, ErrNotObtained)
		if at.fresh && len(cond.Args) > 0 && w.is(cond.Args[0], w.call.Err) {
			return w.predicate(cond, taken)
		}
	case *ast.BinaryExpr:
		if (cond.Op == token.LAND) == taken && (cond.Op == token.LAND || cond.Op == token.LOR) {
			return cmp.Or(w.failed(at, cond.X, taken), w.failed(at, cond.Y, taken))
		}
		if cond.Op == token.EQL || cond.Op == token.NEQ {
			if known := w.compared(at, cond, (cond.Op == token.EQL) == taken); known != unasked {
				return known
			}
		}
	}
	if w.knows(cond) {
		return perhaps
	}
	return unasked
}

// predicate judges a call that asks something about the error.
func (w *walk) predicate(call *ast.CallExpr, taken bool) answer {
	fn := locks.Callee(w.info, call)
	switch {
	case fn == nil || !strings.HasPrefix(strings.ToLower(fn.Name()), "is") && fn.FullName() != "errors.As":
		return perhaps
	case taken:
		return yes
	}
	return unasked
}

// compared judges a comparison of the error, or of the lock, with another value.
func (w *walk) compared(at step, cond *ast.BinaryExpr, equal bool) answer {
	x, y := ast.Unparen(cond.X), ast.Unparen(cond.Y)
	if w.info.Types[x].IsNil() {
		x, y = y, x
	}
	isNil := w.info.Types[y].IsNil()
	isError := x == ast.Expr(w.call.Expr) || at.fresh && w.is(x, w.call.Err)
	isLock := at.fresh && w.is(x, w.call.Lock) && w.call.Function.Lock == locks.Result
	switch {
	case isError && isNil && equal, isLock && isNil && !equal:
		return no
	case isError && isNil, isLock && isNil, isError && equal: // err == ErrNotObtained
		return yes
	}
	return unasked
}

// knows reports whether an expression has a variable that may know the outcome.
func (w *walk) knows(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, _ := w.info.Uses[id].(*types.Var)
			found = found || w.told[v]
		}
		return !found
	})
	return found
}

// prepare finds the tags of the switches, and the variables that may know the outcome: those
// whose value comes from the error, those that get a value where the error decides, and, for a
// refusal, those that change while a loop tries again.
func (w *walk) prepare() {
	var stack []ast.Node
	ast.Inspect(body(w.call.Func), func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.SwitchStmt:
			if n.Tag != nil {
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						w.tags[e] = n.Tag
					}
				}
			}
		case *ast.AssignStmt:
			w.tell(stack, n.Lhs, n.Rhs)
		case *ast.IncDecStmt:
			w.tell(stack, []ast.Expr{n.X}, nil)
		case *ast.ValueSpec:
			for _, name := range n.Names {
				w.tell(stack, []ast.Expr{name}, n.Values)
			}
		}
		stack = append(stack, n)
		return true
	})
	delete(w.told, w.call.Err)
	delete(w.told, w.call.Lock)
	delete(w.told, nil)
}

func (w *walk) tell(stack []ast.Node, left, values []ast.Expr) {
	inside := func(block ast.Node) bool { return contains(block, left[0]) }
	tells := slices.ContainsFunc(values, w.mentions) || slices.ContainsFunc(stack, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			return (inside(n.Body) || n.Else != nil && inside(n.Else)) && w.mentions(n.Cond)
		case *ast.SwitchStmt:
			return inside(n.Body) && w.mentions(n.Tag)
		case *ast.CaseClause:
			return slices.ContainsFunc(n.List, w.mentions)
		case *ast.ForStmt, *ast.RangeStmt:
			return w.refused && contains(n, w.call.Expr)
		}
		return false
	})
	if !tells {
		return
	}
	for _, e := range left {
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			v, _ := w.info.ObjectOf(id).(*types.Var)
			w.told[v] = true
		}
	}
}

// mentions reports whether an expression has the error, the comparison of the lock with nil, or
// the call without an error.
func (w *walk) mentions(e ast.Expr) (found bool) {
	if e == nil || e == ast.Expr(w.call.Expr) {
		return false
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found = found || w.is(n, w.call.Err)
		case *ast.BinaryExpr:
			found = found || w.info.Types[n.Y].IsNil() && w.is(n.X, w.call.Lock)
		case *ast.CallExpr:
			found = found || n == w.call.Expr && w.call.Err == nil
		}
		return !found
	})
	return found
}

func (w *walk) is(e ast.Expr, v *types.Var) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && v != nil && w.info.ObjectOf(id) == v
}

// assigns reports whether a node gives the variable of the error a new value, not a value made
// of the error.
func (w *walk) assigns(n ast.Node) bool {
	assign, ok := n.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(assign.Lhs, func(left ast.Expr) bool { return w.is(left, w.call.Err) }) &&
		!slices.ContainsFunc(assign.Rhs, w.mentions)
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
