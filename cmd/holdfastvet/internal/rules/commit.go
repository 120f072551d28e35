package rules

import (
	"go/ast"
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
	i := slices.Index(c.Stack, c.Func)
	return i > 0 && slices.ContainsFunc(p.found.In(c.Stack[i-1], locks.Transact), func(t *locks.Call) bool {
		return t.Expr == c.Stack[i-1]
	})
}

// thenCommits reports a path from a release to the commit of a transaction that was open.
func (p *pass) thenCommits(c *locks.Call, acquired []*locks.Call) {
	var committed *locks.Call
	p.search(c, false, func(n ast.Node) verdict {
		if slices.ContainsFunc(acquired, func(a *locks.Call) bool { return contains(n, a.Expr) }) {
			return leave
		}
		for _, other := range p.found.In(n, locks.Commit) {
			opened := other.Lock != nil && other.Lock.Pos() < c.Expr.Pos() && contains(c.Func, at(other.Lock.Pos()))
			if other.Func == c.Func && !other.Deferred && opened {
				committed = other
				return hit
			}
		}
		return goOn
	})
	if committed != nil {
		p.report(c.Expr, nil, "the release comes before the commit in line %d: release after the commit",
			p.Fset.Position(committed.Expr.Pos()).Line)
	}
}
