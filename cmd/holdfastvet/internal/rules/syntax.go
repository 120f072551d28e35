package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// at is a place in the source, as a node without extent.
type at token.Pos

func (a at) Pos() token.Pos { return token.Pos(a) }
func (a at) End() token.Pos { return token.Pos(a) }

// signature returns the type of a function in the source, or nil.
func signature(n ast.Node) *ast.FuncType {
	switch fn := n.(type) {
	case *ast.FuncDecl:
		return fn.Type
	case *ast.FuncLit:
		return fn.Type
	}
	return nil
}

// body returns the body of a function in the source, or nil.
func body(n ast.Node) *ast.BlockStmt {
	switch fn := n.(type) {
	case *ast.FuncDecl:
		return fn.Body
	case *ast.FuncLit:
		return fn.Body
	}
	return nil
}

// ends reports whether a call ends the process or the goroutine, by its name.
func ends(call *ast.CallExpr) bool {
	name := types.ExprString(call.Fun)
	name = name[strings.LastIndex(name, ".")+1:]
	return name == "panic" || strings.HasPrefix(name, "Exit") || strings.HasPrefix(name, "Fatal") || name == "Panic" || name == "Panicf"
}
