package rules

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// Commit reports a release before the commit of the transaction under the lock.
var Commit = rule("commit", `
report a release before the commit of the transaction under the lock

Between the release and the commit, the next holder reads the old rows: the transaction is not
visible yet. Both holders then write from the same rows.

Bad:

	err := db.Transaction(func(tx *gorm.DB) error {
		if err := mutex.Lock(); err != nil {
			return err
		}
		defer mutex.Unlock()
		return withdraw(tx)
	})

Good:

	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	err := db.Transaction(withdraw)
`, commit)

// commits are the methods that commit a transaction.
var commits = []string{
	"(*database/sql.Tx).Commit",
	"(github.com/jackc/pgx.Tx).Commit",
	"(*gorm.io/gorm.DB).Commit",
	"(github.com/uptrace/bun.Tx).Commit",
}

// transactions are the functions that commit after a function literal.
var transactions = []string{
	"(*gorm.io/gorm.DB).Transaction",
	"(*github.com/uptrace/bun.DB).RunInTx",
	"github.com/jackc/pgx.BeginFunc",
	"github.com/jackc/pgx.BeginTxFunc",
	"(" + "github.com/holdfast-go/holdfast/fence.SQL).Do",
}

func commit(p *pass) {
	for _, c := range p.found.Calls {
		if c.Does != locks.Release || c.Lock == nil {
			continue
		}
		acquired := p.found.Others(c, locks.Acquire)
		switch {
		case len(acquired) == 0:
		case p.inTransaction(c):
			p.report(c.Expr, nil, "the release comes before the commit of the transaction around: acquire the lock before the transaction")
		case !c.Deferred:
			p.thenCommits(c, acquired)
		}
	}
}

// inTransaction reports whether the function of a call is a function literal, and the
// argument of a call that commits afterwards.
func (p *pass) inTransaction(c *locks.Call) bool {
	for i, n := range c.Stack {
		if n == c.Func && i > 0 {
			call, ok := c.Stack[i-1].(*ast.CallExpr)
			return ok && p.calls(call, transactions)
		}
	}
	return false
}

func (p *pass) calls(call *ast.CallExpr, names []string) bool {
	fn := locks.Callee(p.TypesInfo, call)
	return fn != nil && slices.Contains(names, locks.FullName(fn))
}

// thenCommits reports a path from a release to the commit of a transaction that was open.
func (p *pass) thenCommits(c *locks.Call, acquired []*locks.Call) {
	var committed ast.Node
	p.search(c, false, func(n ast.Node) verdict {
		if slices.ContainsFunc(acquired, func(a *locks.Call) bool { return contains(n, a.Expr) }) {
			return leave
		}
		if _, ok := n.(*ast.DeferStmt); ok {
			return goOn
		}
		if committed = p.commitOf(n, c); committed != nil {
			return hit
		}
		return goOn
	})
	if committed != nil {
		p.report(c.Expr, nil, "the release comes before the commit in line %d: release after the commit",
			p.Fset.Position(committed.Pos()).Line)
	}
}

// commitOf returns the commit in a node of a transaction that is older than the release.
func (p *pass) commitOf(n ast.Node, release *locks.Call) (found ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !p.calls(call, commits) {
			return found == nil
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := ast.Unparen(sel.X).(*ast.Ident); ok {
			v, ok := p.TypesInfo.Uses[id].(*types.Var)
			if ok && v.Pos() < release.Expr.Pos() && contains(release.Func, at(v.Pos())) {
				found = call
			}
		}
		return found == nil
	})
	return found
}
