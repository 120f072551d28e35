package rules

import (
	"go/ast"
	"go/constant"
	"go/token"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// Pooled reports an advisory lock of an arbitrary connection of a pool.
var Pooled = rule("pooled", `
report an advisory lock on an arbitrary connection of a pool

An advisory lock belongs to the session or to the transaction. A pool runs each statement on any of
its connections: the release goes to another session, and releases nothing. The lock stays held as
long as the first connection lives. A transaction lock ends with its own statement. A package that
limits its pool to one connection by SetMaxOpenConns(1) is left alone.

Bad:

	if _, err := db.ExecContext(ctx, "SELECT pg_advisory_lock($1)", id); err != nil {
		return err
	}
	defer db.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", id)

Good:

	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", id); err != nil {
		return err
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", id)
`, pooled)

func pooled(p *pass) {
	if p.oneConnection() {
		return
	}
	for _, c := range p.found.Calls {
		switch {
		case c.SQL == nil || !c.SQL.Pool:
		case c.SQL.Transaction:
			p.report(c.Expr, nil, "%s on a pool locks nothing: the lock ends with the statement; begin a transaction", c.Name())
		case c.Does == locks.Release:
			p.report(c.Expr, nil, "%s on a pool may reach a session without the lock: use the connection that acquired the lock", c.Name())
		default:
			p.report(c.Expr, nil, "%s on a pool locks for any one connection: take a connection, and keep it until the release", c.Name())
		}
	}
}

// oneConnection reports whether the package limits a pool to one connection.
func (p *pass) oneConnection() (found bool) {
	for n := range p.inspector().PreorderSeq((*ast.CallExpr)(nil)) {
		call := n.(*ast.CallExpr)
		if method(call) != "SetMaxOpenConns" || len(call.Args) != 1 {
			continue
		}
		value := p.TypesInfo.Types[call.Args[0]].Value
		found = found || value != nil && constant.Compare(value, token.EQL, constant.MakeInt64(1))
	}
	return found
}
