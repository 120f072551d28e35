package rules

import (
	"go/ast"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// OpenTx reports a lock that is acquired inside an open transaction.
var OpenTx = rule("opentx", `
report a lock that is acquired inside an open transaction

While the function waits for the lock, the transaction holds a connection, and the locks of its
rows. Under contention the waiters use up the pool, and the holder of the lock finds no connection.
A transaction with a snapshot reads rows from before the lock. An advisory lock of the database is
no misuse: the transaction is its place.

Bad:

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.Unlock()
	if err := withdraw(tx); err != nil {
		return err
	}
	return tx.Commit()

Good:

	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.Unlock()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := withdraw(tx); err != nil {
		return err
	}
	return tx.Commit()
`, openTx)

func openTx(p *pass) {
	reported := make(map[*locks.Call]bool)
	for _, c := range p.found.Calls {
		var late []*locks.Call
		switch {
		case c.Does == locks.Begin && c.Lock != nil:
			late = p.acquiredInside(c)
		case c.Does == locks.Acquire && c.SQL == nil && p.inTransaction(c) && len(p.found.Others(c, locks.Release)) == 0:
			late = append(late, c) // with a release, rule commit has a finding
		}
		for _, a := range late {
			if !reported[a] {
				reported[a] = true
				p.report(a.Expr, nil, "%s waits inside an open transaction: begin the transaction when the lock is held", a.Name())
			}
		}
	}
}

// acquiredInside returns the first acquisitions on the paths from the begin of a transaction to
// its end.
func (p *pass) acquiredInside(begin *locks.Call) (all []*locks.Call) {
	p.search(begin, false, func(n ast.Node) verdict {
		for _, c := range p.found.In(n, locks.Commit, locks.Rollback, locks.Acquire) {
			switch {
			case c.Func != begin.Func || c.Deferred || c.SQL != nil:
			case c.Does == locks.Acquire:
				all = append(all, c)
				return leave
			case c.Lock == begin.Lock:
				return leave
			}
		}
		return goOn
	})
	return all
}
