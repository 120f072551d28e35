package rules

import (
	"go/ast"
	"go/constant"
	"go/types"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// ShortTTL reports a constant sleep or timeout that is longer than the TTL of the lock.
var ShortTTL = rule("shortttl", `
report a constant sleep or timeout that is longer than the TTL of the lock

The lock expires while the function still sleeps, or while its work may still run. The next holder
begins beside the work. A lock that the function extends is no misuse.

Bad:

	lock, err := client.Obtain(ctx, key, 10*time.Second, nil)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return work(ctx)

Good:

	lock, err := client.Obtain(ctx, key, 2*time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return work(ctx)
`, shortTTL)

func shortTTL(p *pass) {
	for _, c := range p.found.Calls {
		if c.Does != locks.Acquire || c.Lock == nil || len(p.found.Others(c, locks.Extend)) > 0 {
			continue
		}
		if ttl, ok := p.ttl(c); ok && p.owns(c) {
			p.longer(c, ttl)
		}
	}
}

// ttl returns the constant TTL of an acquired lock.
func (p *pass) ttl(c *locks.Call) (time.Duration, bool) {
	if i := c.TTL; i > 0 && i < len(c.Expr.Args) {
		return p.duration(c.Expr.Args[i])
	}
	if c.Function.Lock != locks.Receiver {
		return 0, false
	}
	for _, value := range p.assigned(body(c.Func), c.Lock) {
		if call, ok := ast.Unparen(value).(*ast.CallExpr); ok {
			return p.option(call)
		}
	}
	return 0, false
}

// option returns the TTL that an option of a constructor sets, or the default.
func (p *pass) option(call *ast.CallExpr) (time.Duration, bool) {
	fn := locks.Callee(p.TypesInfo, call)
	if fn == nil {
		return 0, false
	}
	made, ok := locks.Constructors[locks.FullName(fn)]
	if !ok {
		return 0, false
	}
	simple := true
	for _, arg := range call.Args[min(1, len(call.Args)):] {
		option, ok := ast.Unparen(arg).(*ast.CallExpr)
		if !ok || len(option.Args) == 0 {
			simple = false
			continue
		}
		if fn := locks.Callee(p.TypesInfo, option); fn != nil && locks.FullName(fn) == made.Option {
			return p.duration(option.Args[0])
		}
	}
	return made.Default, simple && !call.Ellipsis.IsValid()
}

// duration returns the value of a constant duration.
func (p *pass) duration(e ast.Expr) (time.Duration, bool) {
	tv := p.TypesInfo.Types[e]
	if tv.Value == nil || locks.TypeName(tv.Type) != "time.Duration" {
		return 0, false
	}
	n, exact := constant.Int64Val(constant.ToInt(tv.Value))
	return time.Duration(n), exact
}

// longer reports the sleeps and the timeouts under a lock that are longer than its TTL.
func (p *pass) longer(c *locks.Call, ttl time.Duration) {
	p.search(c, false, func(n ast.Node) verdict {
		if _, isDefer := n.(*ast.DeferStmt); isDefer {
			return goOn
		}
		for _, r := range p.found.Others(c, locks.Release) {
			if contains(n, r.Expr) {
				return leave
			}
		}
		if contains(n, c.Expr) {
			return leave
		}
		call, d := p.lasts(n)
		if call == nil || d <= ttl {
			return goOn
		}
		p.report(call, nil, "%v is longer than the TTL of the lock, %v: the lock expires meanwhile", d, ttl)
		return hit
	})
}

// durations are the functions that take time, with the index of the argument.
var durations = map[string]int{"time.Sleep": 0, "context.WithTimeout": 1, "context.WithTimeoutCause": 1}

// lasts returns the call in a node that takes a constant time.
func (p *pass) lasts(n ast.Node) (found *ast.CallExpr, d time.Duration) {
	ast.Inspect(n, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		i, ok := durations[name(p.TypesInfo, call)]
		if ok && i < len(call.Args) {
			if value, ok := p.duration(call.Args[i]); ok {
				found, d = call, value
			}
		}
		return found == nil
	})
	return found, d
}

func name(info *types.Info, call *ast.CallExpr) string {
	if fn := locks.Callee(info, call); fn != nil {
		return fn.FullName()
	}
	return ""
}
