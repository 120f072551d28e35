package locks

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

var major = regexp.MustCompile(`/v[0-9]+\b`)

// plain returns the name of a function or a type without major versions, and with the newest
// import path of the package.
func plain(name string) string {
	name = major.ReplaceAllString(name, "")
	for old, now := range aliases {
		name = strings.Replace(name, old+".", now+".", 1)
	}
	return name
}

// FullName returns the name of a function as the table has it.
func FullName(fn *types.Func) string { return plain(fn.Origin().FullName()) }

// TypeName returns the name of a type as the table has it, with its package.
func TypeName(t types.Type) string {
	if t == nil {
		return ""
	}
	return plain(types.TypeString(t, nil))
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
func IsContext(t types.Type) bool { return t != nil && TypeName(types.Unalias(t)) == "context.Context" }

// Library reports whether a package belongs to a lock library.
func Library(path string) bool {
	return slices.ContainsFunc(Modules, func(m string) bool {
		return path == m || strings.HasPrefix(path, m+"/")
	})
}
