package rules

import (
	"go/ast"
	"go/types"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// UnlockErr reports a release whose error is dropped, although the function returns an error.
var UnlockErr = rule("unlockerr", `
report a dropped error of a release that says that the lock was lost

The error of the release is the last word on the lock: the lock had expired before, and another
process may have worked at the same time. A function that drops the error, and returns an error of
its own, reports success. An assignment to the blank identifier is meant, and no misuse.

Bad:

	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	return work(ctx)

Good:

	if err := mutex.Lock(); err != nil {
		return err
	}
	err := work(ctx)
	_, lost := mutex.Unlock()
	return errors.Join(err, lost)
`, unlockErr)

func unlockErr(p *pass) {
	for _, c := range p.found.Calls {
		if c.Does == locks.Release && c.Lost && dropped(c) && p.returnsError(c.Func) {
			p.report(c.Expr, nil, "the error of %s is dropped, and says that the lock was lost: return the error", c.Name())
		}
	}
}

// dropped reports whether nothing receives the results of a call.
func dropped(c *locks.Call) bool {
	switch c.Stack[len(c.Stack)-2].(type) {
	case *ast.ExprStmt, *ast.DeferStmt:
		return true
	}
	return false
}

// returnsError reports whether the last result of a function is an error.
func (p *pass) returnsError(fn ast.Node) bool {
	results := signature(fn).Results
	if results == nil || len(results.List) == 0 {
		return false
	}
	last := results.List[len(results.List)-1].Type
	return types.Identical(p.TypesInfo.TypeOf(last), types.Universe.Lookup("error").Type())
}
