package locks

import (
	"go/ast"
	"go/types"
	"path"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// A Call is a call of a lock library, or of a transaction, whose variable then is the Lock.
type Call struct {
	*Function
	SQL      *Statement // for advisory locks of a database
	Expr     *ast.CallExpr
	Stack    []ast.Node // from the file to Expr
	Func     ast.Node   // the *ast.FuncDecl or *ast.FuncLit in which the call takes effect
	Deferred bool       // the call runs when Func returns

	// The variables, nil if the call has none, or drops the value.
	Lock *types.Var
	Err  *types.Var

	Context ast.Expr   // the context of the call
	Scope   *types.Var // the context that ends with the lock
}

// Name returns the name that readers of a message know.
func (c *Call) Name() string {
	if c.SQL != nil {
		return c.SQL.Function
	}
	if c.Function.Name == "" {
		return types.ExprString(c.Expr.Fun)
	}
	return c.Function.Name[strings.LastIndex(c.Function.Name, ".")+1:]
}

// Work is a function literal that runs while a lock is held.
type Work struct {
	Lit     *ast.FuncLit
	Stopped ast.Expr // the function that is called after a loss, nil for none
}

// Found is the result of Finder.
type Found struct {
	Calls []*Call
	Works []Work
}

// Concerns reports whether there is any use of a lock.
func (f *Found) Concerns() bool {
	return len(f.Works) > 0 || slices.ContainsFunc(f.Calls, func(c *Call) bool { return c.Does < Begin })
}

// In returns the calls inside a node.
func (f *Found) In(n ast.Node, deeds ...Deed) (all []*Call) {
	for _, c := range f.Calls {
		if n.Pos() <= c.Expr.Pos() && c.Expr.End() <= n.End() && slices.Contains(deeds, c.Does) {
			all = append(all, c)
		}
	}
	return all
}

// Others returns the calls with the lock of c that take effect in the function of c.
func (f *Found) Others(c *Call, deeds ...Deed) (all []*Call) {
	for _, other := range f.Calls {
		if other != c && other.Func == c.Func && other.Lock != nil && other.Lock == c.Lock && slices.Contains(deeds, other.Does) {
			all = append(all, other)
		}
	}
	return all
}

// Finder finds the calls of lock libraries. Tests are left out, because tests misuse locks on
// purpose, and so are the libraries.
var Finder = &analysis.Analyzer{
	Name:       "locks",
	Doc:        "find the calls of lock libraries",
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	ResultType: reflect.TypeFor[*Found](),
	Run: func(pass *analysis.Pass) (any, error) {
		s := &search{pass: pass, info: pass.TypesInfo, cancels: make(map[*types.Var]*Call)}
		if !Library(pass.Pkg.Path()) {
			s.all(pass.ResultOf[inspect.Analyzer].(*inspector.Inspector))
		}
		return &s.found, nil
	},
}

type search struct {
	pass    *analysis.Pass
	info    *types.Info
	found   Found
	cancels map[*types.Var]*Call // the acquiring call of a function that releases
}

func (s *search) all(in *inspector.Inspector) {
	kinds := []ast.Node{(*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)}
	in.WithStack(kinds, func(n ast.Node, push bool, stack []ast.Node) bool {
		if !push || s.test(n) {
			return push
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			s.call(n, stack)
		case *ast.CompositeLit:
			s.callbacks(n)
		}
		return true
	})
}

func (s *search) test(n ast.Node) bool {
	return strings.HasSuffix(s.pass.Fset.Position(n.Pos()).Filename, "_test.go")
}

func (s *search) call(expr *ast.CallExpr, stack []ast.Node) {
	fn := Callee(s.info, expr)
	if fn == nil {
		s.cancel(expr, stack)
		return
	}
	c := &Call{Expr: expr, Stack: slices.Clone(stack)}
	if row := lookup(fn); row != nil {
		c.Function = row
	} else if sql, ok := statement(s.info, expr, fn); ok {
		c.Function, c.SQL = &Function{Does: sql.Does, Lock: Database}, &sql
	} else {
		if fn.Pkg() != nil && path.Base(fn.Pkg().Path()) == Wrapper {
			s.work(expr)
		}
		return
	}
	s.variables(c)
	s.place(c)
	if c.Does == Run {
		s.work(expr)
	}
	if c.Function.Lock == Cancel && c.Lock != nil {
		s.cancels[c.Lock] = c
	}
}

// cancel finds the call of a function that releases a lock.
func (s *search) cancel(expr *ast.CallExpr, stack []ast.Node) {
	v := s.variable(expr.Fun)
	if v == nil || s.cancels[v] == nil {
		return
	}
	s.place(&Call{Function: &Function{Does: Release, Lock: Cancel}, Expr: expr, Stack: slices.Clone(stack), Lock: v})
}

// place finds the function in which the call takes effect. A release in a deferred function
// literal belongs to the function around the literal, unless the lock is the literal's own.
func (s *search) place(c *Call) {
	for i, n := range slices.Backward(c.Stack) {
		switch n := n.(type) {
		case *ast.DeferStmt:
			c.Deferred = c.Deferred || n.Call == c.Expr
		case *ast.FuncDecl:
			c.Func = n
		case *ast.FuncLit:
			own := c.Lock != nil && n.Pos() <= c.Lock.Pos() && c.Lock.Pos() <= n.End()
			if c.Does == Release && !own && Deferred(c.Stack[:i+1]) {
				c.Deferred = true
			} else {
				c.Func = n
			}
		}
		if c.Func != nil {
			s.found.Calls = append(s.found.Calls, c)
			return
		}
	}
}

// Deferred reports whether a stack ends in a function literal that a defer statement calls.
func Deferred(stack []ast.Node) bool {
	n := len(stack)
	if n < 3 {
		return false
	}
	lit, isLit := stack[n-1].(*ast.FuncLit)
	call, isCall := stack[n-2].(*ast.CallExpr)
	_, isDefer := stack[n-3].(*ast.DeferStmt)
	return isLit && isCall && isDefer && call.Fun == ast.Expr(lit)
}

// variables finds the lock, the error and the contexts of a call.
func (s *search) variables(c *Call) {
	for _, arg := range c.Expr.Args {
		if IsContext(s.info.TypeOf(arg)) {
			c.Context = arg
			break
		}
	}
	switch c.Function.Lock {
	case Receiver:
		if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok {
			c.Lock = s.variable(sel.X)
		}
	case Argument:
		if n := len(c.Expr.Args); n > 0 {
			c.Lock = s.variable(c.Expr.Args[n-1])
		}
	}
	results := s.results(c)
	if n := len(results); n > 0 && types.Identical(s.typeOf(results[n-1]), types.Universe.Lookup("error").Type()) {
		c.Err = results[n-1]
	}
	switch {
	case c.Function.Lock == Result && len(results) > 0:
		c.Lock = results[0]
	case c.Function.Lock == Cancel && len(results) == 3:
		c.Scope, c.Lock = results[0], results[1]
	}
}

func (s *search) typeOf(v *types.Var) types.Type {
	if v == nil {
		return types.Typ[types.Invalid]
	}
	return v.Type()
}

// results returns the variables to which the results are assigned, nil for a blank.
func (s *search) results(c *Call) (vars []*types.Var) {
	if len(c.Stack) < 2 {
		return nil
	}
	switch n := c.Stack[len(c.Stack)-2].(type) {
	case *ast.AssignStmt:
		if len(n.Rhs) == 1 {
			for _, left := range n.Lhs {
				vars = append(vars, s.variable(left))
			}
		}
	case *ast.ValueSpec:
		if len(n.Values) == 1 {
			for _, left := range n.Names {
				vars = append(vars, s.variable(left))
			}
		}
	}
	return vars
}

// variable returns the variable or the field that an expression names, nil for a blank.
func (s *search) variable(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if sel, isSelector := ast.Unparen(e).(*ast.SelectorExpr); isSelector {
		id, ok = sel.Sel, true
	}
	if !ok || id.Name == "_" {
		return nil
	}
	v, _ := s.info.ObjectOf(id).(*types.Var)
	return v
}

// work notes the function literals among the arguments of a call that receive a context. A
// literal without parameters is the function that is called after a loss.
func (s *search) work(expr *ast.CallExpr) {
	var stopped ast.Expr
	first := len(s.found.Works)
	for _, arg := range expr.Args {
		lit, ok := ast.Unparen(arg).(*ast.FuncLit)
		switch {
		case !ok:
		case len(lit.Type.Params.List) == 0:
			stopped = lit
		case IsContext(s.info.TypeOf(lit.Type.Params.List[0].Type)):
			s.found.Works = append(s.found.Works, Work{Lit: lit})
		}
	}
	for i := range s.found.Works[first:] {
		s.found.Works[first+i].Stopped = stopped
	}
}

// callbacks notes the function literals in a struct of callbacks.
func (s *search) callbacks(lit *ast.CompositeLit) {
	name := TypeName(s.info.TypeOf(lit))
	row := slices.IndexFunc(Callbacks, func(c Callback) bool { return c.Struct == name })
	if row < 0 {
		return
	}
	fields := make(map[string]ast.Expr)
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name] = pair.Value
			}
		}
	}
	if started, ok := fields[Callbacks[row].Started].(*ast.FuncLit); ok {
		s.found.Works = append(s.found.Works, Work{started, fields[Callbacks[row].Stopped]})
	}
}
