package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// BareKey reports a key that begins with a variable.
var BareKey = rule("barekey", `
report a key of a lock that is a sum and begins with input

All users of a store share its keys. A key that begins with the name of a user, or of an order, can
be the key of something else: of another lock, or of a cache. An input that the sender chooses can
then block a lock of another kind. A variable whose name says that it is a prefix is no misuse.

Bad:

	lock, err := client.Obtain(ctx, user+":lock", time.Minute, nil)

Good:

	lock, err := client.Obtain(ctx, "lock:user:"+user, time.Minute, nil)
`, bareKey)

func bareKey(p *pass) {
	seen := make(map[ast.Expr]bool)
	for n := range p.inspector().PreorderSeq((*ast.CallExpr)(nil)) {
		call := n.(*ast.CallExpr)
		fn := locks.Callee(p.TypesInfo, call)
		if fn == nil {
			continue
		}
		i, ok := locks.Keys[locks.FullName(fn)]
		if !ok || i >= len(call.Args) || seen[call.Args[i]] {
			continue
		}
		seen[call.Args[i]] = true
		if first := p.bare(call.Args[i]); first != nil {
			p.report(call.Args[i], nil, "the key begins with %s, and may be the key of something else: begin the key with a constant",
				types.ExprString(first))
		}
	}
}

var prefix = regexp.MustCompile(`(?i)prefix|pfx|namespace|root|base|path|dir|key|name|scope|env|app|service|topic|kind|type`)

// bare returns the first operand of a sum, if it is a variable that is no prefix.
func (p *pass) bare(key ast.Expr) ast.Expr {
	sum, ok := ast.Unparen(key).(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD || p.TypesInfo.Types[sum].Value != nil {
		return nil
	}
	first := ast.Unparen(sum.X)
	if _, ok := first.(*ast.BinaryExpr); ok {
		return p.bare(first)
	}
	if p.TypesInfo.Types[first].Value != nil || prefix.MatchString(types.ExprString(first)) {
		return nil
	}
	return first
}
