package locks

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

var major = regexp.MustCompile(`/v[0-9]+\b`)

// Plain returns an import path, or the name of a function or a type, without major versions, and
// with the newest import path of the package.
func Plain(name string) string {
	name = major.ReplaceAllString(name, "")
	for old, now := range aliases {
		name = strings.Replace(name, old, now, 1)
	}
	return name
}

// FullName returns the name of a function as the table has it.
func FullName(fn *types.Func) string { return Plain(fn.Origin().FullName()) }

// rows are the rows of the table by the last part of their names: most calls of a program need
// no look at more.
var rows = func() map[string][]*Function {
	rows := make(map[string][]*Function)
	for i := range Functions {
		last := Functions[i].Name[strings.LastIndex(Functions[i].Name, ".")+1:]
		rows[last] = append(rows[last], &Functions[i])
	}
	return rows
}()

// lookup returns the row of a function, or nil.
func lookup(fn *types.Func) *Function {
	candidates := rows[fn.Name()]
	if candidates == nil {
		return nil
	}
	name := FullName(fn)
	if i := slices.IndexFunc(candidates, func(f *Function) bool { return f.Name == name }); i >= 0 {
		return candidates[i]
	}
	return nil
}

// TypeName returns the name of a defined type as the table has it, with its package, and "" for
// every other type.
func TypeName(t types.Type) string {
	if t == nil {
		return ""
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return Plain(named.Obj().Pkg().Path()) + "." + named.Obj().Name()
}

// Callee returns the function or the method that is called, or nil if only the running
// program knows.
func Callee(info *types.Info, call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) { // an instance of a generic function
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}
	var name *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun
	case *ast.SelectorExpr:
		name = fun.Sel
	default:
		return nil
	}
	fn, _ := info.Uses[name].(*types.Func)
	return fn
}

// IsContext reports whether t is context.Context.
func IsContext(t types.Type) bool { return TypeName(t) == "context.Context" }

// Library reports whether a package belongs to a lock library.
func Library(path string) bool {
	return slices.ContainsFunc(Modules, func(m string) bool {
		return path == m || strings.HasPrefix(path, m+"/")
	})
}
